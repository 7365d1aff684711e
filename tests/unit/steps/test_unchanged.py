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
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from support import rig as play
from support.rig import Rig, make_rig

TOLD = f"the answer gives {play.CODE} back as it was: something in it must change to make the failing test pass"
AS_JSON = json.dumps({"why": "it is right now", "edits": [{"path": play.CODE, "text": play.BUGGY}]})
AS_TEXT = f"{play.CODE}\n```python\n{play.BUGGY}```\n"
UNNAMED = f"Here it is:\n\n```python\n{play.BUGGY}```\n"
AS_BLOCK = play.block("    return number + number + 1", "    return number + number + 1")
JSON = QuestionOptions(edits=EditKind.whole, shaped=True)
BRIEF = QuestionOptions(edits=EditKind.whole, brief=True)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def ran(
    rig: Rig, reply: Callable[[Ask], str], asks: QuestionOptions | None = None, attempts: int = 1
) -> tuple[RunState, list[Ask]]:
    """Run to the end; return the final state and the questions for a patch."""

    async def go() -> RunState:
        run_id = await rig.begin(limits=Limits(attempts=attempts), asks=asks or QuestionOptions())
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, inline)).state

    model = rig.with_model(lambda ask: reply(ask) if ask.question == "patch" else play.CARD)
    return asyncio.run(go()), [ask for ask in model.asks if ask.question == "patch"]


def has_answered(ask: Ask) -> bool:
    """Check whether this is the second turn of a question."""
    return any(message.role is Role.assistant for message in ask.messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("same", "asks"),
    [
        (AS_JSON, JSON),
        (AS_TEXT, BRIEF),
        *(
            pytest.param(*item, marks=pytest.mark.soak)
            for item in ((AS_TEXT, QuestionOptions()), (UNNAMED, BRIEF), (AS_BLOCK, QuestionOptions()))
        ),
    ],
)
def test_it_is_told_in_the_same_attempt(rig, same, asks):
    ended, asked = ran(rig, lambda ask: play.RIGHT if has_answered(ask) else same, asks)
    assert (ended.result, ended.tries) == ("verified", 1)
    assert [has_answered(ask) for ask in asked] == [False, True]
    assert asked[1].messages[-1].text == (
        f"Your answer could not be used: {TOLD}.\n\nAnswer again, in the form described above.\n"
    )
    assert asyncio.run(replay(rig.adapters, ended.run_id)).state == ended


@pytest.mark.slow
def test_the_next_attempt_is_told_too(rig):
    ended, asked = ran(rig, lambda _: AS_JSON, JSON, attempts=2)
    assert [has_answered(ask) for ask in asked] == [False, True, False, True]
    assert f"outcome: {TOLD}" in asked[2].messages[1].text
    assert [(entry.outcome, entry.files) for entry in ended.history] == [(TOLD, ())]
    assert ended.now.patch is not None
    assert (ended.now.patch.fault, ended.now.patch.edits, ended.now.apply) == (TOLD, "", None)


@pytest.mark.soak
def test_a_small_model_is_told_in_few_words(rig):
    said = "Your last answer gave the file back as it was. Something in it must change to make the test pass."
    _, asked = ran(rig, lambda _: AS_TEXT, BRIEF, attempts=2)
    assert said not in asked[0].messages[1].text
    assert asked[2].messages[1].text.rstrip().endswith(said)
    _, asked = ran(rig, lambda _: play.WRONG, BRIEF, attempts=2)
    assert said not in asked[1].messages[1].text
