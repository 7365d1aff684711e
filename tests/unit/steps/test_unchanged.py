"""If an answer returns a file unchanged, the model is told so and told what must differ."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.core.change import EditKind
from redstart.core.chat import Ask, Role
from redstart.core.run import Limits, RunState
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import Rig, make_rig

TOLD = f"the answer gives {play.CODE} back as it was: something in it must change to make the failing test pass"
AS_JSON = json.dumps({"why": "it is right now", "edits": [{"path": play.CODE, "text": play.BUGGY}]})
AS_TEXT = f"{play.CODE}\n```python\n{play.BUGGY}```\n"
UNNAMED = f"Here it is:\n\n```python\n{play.BUGGY}```\n"
AS_BLOCK = play.block("    return number + number + 1", "    return number + number + 1")
JSON = QuestionOptions(edits=EditKind.whole, shaped=True)
BRIEF = QuestionOptions(edits=EditKind.whole, brief=True)
ENDS = QuestionOptions(edits=EditKind.whole, brief=True, ends_unchanged=True)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def run_to_end(
    rig: Rig, reply: Callable[[Ask], str], asks: QuestionOptions | None = None, attempts: int = 1
) -> tuple[RunState, list[Ask]]:
    """Run to the end; return the final state and the questions for a patch."""

    async def go() -> RunState:
        run_id = await rig.begin(limits=Limits(attempts=attempts), asks=asks or QuestionOptions())
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, run_inline)).state

    model = rig.with_model(lambda ask: reply(ask) if ask.question == "patch" else play.CARD)
    return asyncio.run(go()), [ask for ask in model.questions if ask.question == "patch"]


def has_answered(ask: Ask) -> bool:
    """Check whether this is the second turn of a question."""
    return any(message.role is Role.assistant for message in ask.messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unchanged_answer", "asks"),
    [
        (AS_JSON, JSON),
        (AS_TEXT, BRIEF),
        *(
            pytest.param(*item, marks=pytest.mark.soak)
            for item in ((AS_TEXT, QuestionOptions()), (UNNAMED, BRIEF), (AS_BLOCK, QuestionOptions()))
        ),
    ],
)
def test_unchanged_file_is_reported_in_the_same_attempt(rig, unchanged_answer, asks):
    final_state, patch_asks = run_to_end(rig, lambda ask: play.RIGHT if has_answered(ask) else unchanged_answer, asks)
    assert (final_state.result, final_state.tries) == ("verified", 1)
    assert [has_answered(ask) for ask in patch_asks] == [False, True]
    assert patch_asks[1].messages[-1].text == (
        f"Your answer could not be used: {TOLD}.\n\nAnswer again, in the form described above.\n"
    )
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


@pytest.mark.slow
def test_unchanged_file_is_also_reported_in_the_next_attempt(rig):
    final_state, patch_asks = run_to_end(rig, lambda _: AS_JSON, JSON, attempts=2)
    assert [has_answered(ask) for ask in patch_asks] == [False, True, False, True]
    assert f"outcome: {TOLD}" in patch_asks[2].messages[1].text
    assert [(entry.outcome, entry.files) for entry in final_state.history] == [(TOLD, ())]
    assert final_state.now.patch is not None
    assert (final_state.now.patch.fault, final_state.now.patch.edits, final_state.now.apply) == (TOLD, "", None)


@pytest.mark.soak
def test_small_model_gets_a_short_message(rig):
    message = "Your last answer gave the file back as it was. Something in it must change to make the test pass."
    _, patch_asks = run_to_end(rig, lambda _: AS_TEXT, BRIEF, attempts=2)
    assert message not in patch_asks[0].messages[1].text
    assert patch_asks[2].messages[1].text.rstrip().endswith(message)
    _, patch_asks = run_to_end(rig, lambda _: play.WRONG, BRIEF, attempts=2)
    assert message not in patch_asks[1].messages[1].text


@pytest.mark.slow
@pytest.mark.parametrize("unchanged_answer", [AS_TEXT, UNNAMED])
def test_small_model_is_asked_again_in_a_warmer_attempt(rig, unchanged_answer):
    answers = iter([unchanged_answer, unchanged_answer, unchanged_answer, play.RIGHT])
    final_state, patch_asks = run_to_end(rig, lambda _: next(answers), ENDS, attempts=4)
    assert (final_state.result, final_state.tries) == ("verified", 4)
    assert [has_answered(ask) for ask in patch_asks] == [False] * 4
    assert [ask.temperature for ask in patch_asks] == [0.0, 0.6, 0.75, 0.9]
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


@pytest.mark.slow
def test_temperature_falls_back_after_a_change(rig):
    answers = iter([AS_TEXT, AS_TEXT, AS_TEXT, play.WRONG, AS_TEXT])
    _, patch_asks = run_to_end(rig, lambda _: next(answers), ENDS, attempts=5)
    assert [ask.temperature for ask in patch_asks] == [0.0, 0.6, 0.75, 0.9, 0.6]
