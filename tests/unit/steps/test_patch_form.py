"""A model is asked for edits in the form in which its edits have fitted best so far."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.change import EditKind, FitCounts
from redstart.core.chat import Ask
from redstart.core.errors import ModelError
from redstart.core.run import Limits, RunState
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.ports.store.port.journal import CallPlace, Journal, JournalRecord
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.toolkit.patching.reading.formats import LONGEST_WHOLE, MIN_EDITS
from redstart.toolkit.prompts.fit_window import estimate_tokens
from support import rig as play
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

WHOLE, ENVELOPE = "all of the file as it shall be", "*** Begin Patch"
ONCE = Limits(attempts=1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def build_misfits(count: int) -> str:
    """Build an answer with this many blocks that fit nowhere."""
    return "\n".join(
        play.block(f"    return a line {number} that is not there", "    return 0") for number in range(count)
    )


def resume_run(rig: Rig, run_id: str) -> RunState:
    async def go() -> RunState:
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, run_inline)).state

    return asyncio.run(go())


def run_to_end(rig: Rig, answers: list[str], limits: Limits | None = None) -> tuple[RunState, list[str]]:
    """Run to the end; return the final state and the texts of the questions for patches."""
    model = rig.with_model(answers)
    final_state = resume_run(rig, asyncio.run(rig.begin(limits=limits)))
    return final_state, list_patch_prompts(model.questions)


def list_patch_prompts(asks: list[Ask]) -> list[str]:
    return [str(ask.messages) for ask in asks if ask.question == "patch"]


def list_forms(texts: list[str]) -> list[str]:
    """Return the form that each text asks for. No text names the default form, so it is the fallback."""
    names = {WHOLE: "whole", ENVELOPE: "envelope", "+++ b/path/to/file.py": "diff"}
    return [next((name for phrase, name in names.items() if phrase in text), "block") for text in texts]


def test_repeated_block_misfits_switch_to_another_edit_form(rig):
    _, few_prompts = run_to_end(rig, [build_misfits(MIN_EDITS - 1)], ONCE)
    final_state, more_prompts = run_to_end(rig, [build_misfits(1), play.RIGHT, play.CARD])
    assert (list_forms(few_prompts), list_forms(more_prompts)) == (["block"], ["block", "whole"])
    assert final_state.result == "verified"
    tally = asyncio.run(rig.adapters.store.count_fits(play.WRITER, tenant="home"))
    assert tally == {EditKind.block: FitCounts(1, MIN_EDITS + 1)}


def test_long_file_is_not_requested_as_a_whole(rig, monkeypatch):
    run_to_end(rig, [build_misfits(MIN_EDITS)], ONCE)
    padding = "# more\n" * (LONGEST_WHOLE - play.BUGGY.count("\n"))
    monkeypatch.setattr(play, "BUGGY", play.BUGGY + padding)
    _, at_the_edge = run_to_end(rig, [play.WRONG, play.CARD], ONCE)
    monkeypatch.setattr(play, "BUGGY", play.BUGGY + "# one more\n")
    _, beyond_prompts = run_to_end(rig, [play.WRONG, play.CARD], ONCE)
    assert (list_forms(at_the_edge), list_forms(beyond_prompts)) == (["whole"], ["envelope"])


def test_misfits_of_other_models_do_not_count(rig):
    run_to_end(rig, [build_misfits(MIN_EDITS)], ONCE)
    rig.adapters = replace(rig.adapters, writer="scripted:other")
    assert list_forms(run_to_end(rig, [play.RIGHT, play.CARD])[1]) == ["block"]


def test_resumed_step_keeps_its_chosen_edit_form(rig):
    rig.with_model([ModelError("the endpoint is down")])
    run_id = asyncio.run(rig.begin())
    with pytest.raises(ModelError):
        resume_run(rig, run_id)
    run_to_end(rig, [build_misfits(MIN_EDITS)], ONCE)
    model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
    assert resume_run(rig, run_id).result == "verified"
    assert list_forms(list_patch_prompts(model.questions)) == ["block", "whole"]


def test_replay_uses_the_recorded_edit_forms(rig):
    final_state, prompts = run_to_end(rig, [build_misfits(MIN_EDITS), play.RIGHT, play.CARD])
    assert list_forms(prompts) == ["block", "whole"]
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


class JournalOfBefore:
    """A journal from a version that did not count misfits."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def list_step(self, call: CallPlace) -> list[JournalRecord]:
        return [item for item in await self._journal.list_step(call) if item.call.ordinal != OutsideOrdinal.counted]

    async def list_records(self, run_id: str) -> list[JournalRecord]:
        return [
            record
            for record in await self._journal.list_records(run_id)
            if record.call.ordinal != OutsideOrdinal.counted
        ]


def test_run_from_before_fit_counts_is_replayed_with_blocks(rig):
    final_state, _ = run_to_end(rig, [play.WRONG, play.RIGHT, play.CARD])
    run_to_end(rig, [build_misfits(MIN_EDITS * 3)], ONCE)
    assert list_forms(run_to_end(rig, [play.RIGHT, play.CARD])[1]) == ["whole"]
    old_adapters = replace(rig.adapters, journal=JournalOfBefore(rig.adapters.journal))
    assert asyncio.run(replay(old_adapters, final_state.run_id)).state == final_state


def test_profile_sets_the_default_edit_form(rig):
    state = asyncio.run(rig.begin(asks=QuestionOptions(edits=EditKind.whole)))
    model = rig.with_model(
        [f"WHY: w\n\n{play.CODE}\n```\ndef double(number):\n    return number + number\n```\n", play.CARD]
    )
    assert resume_run(rig, state).result == "verified"
    assert list_forms(list_patch_prompts(model.questions)) == ["whole"]


@pytest.mark.parametrize("edits", [EditKind.whole, EditKind.block])
def test_profile_can_request_edits_as_json(rig, edits):
    run = asyncio.run(rig.begin(asks=QuestionOptions(edits=edits, shaped=True)))
    whole_edit = {"path": play.CODE, "text": "def double(number):\n    return number + number\n"}
    part = {"path": play.CODE, "search": "    return number + number + 1", "text": "    return number + number"}
    edit = whole_edit if edits is EditKind.whole else part
    model = rig.with_model([json.dumps({"why": "one too many", "edits": [edit]}), play.CARD])
    final_state = resume_run(rig, run)
    patch_asks = [ask for ask in model.questions if ask.question == "patch"]
    assert final_state.result == "verified"
    assert [bool(ask.shape) for ask in patch_asks] == [True]
    assert '"edits": [{"path"' in patch_asks[0].messages[0].text
    assert (final_state.now.patch.why, final_state.now.apply.rungs[0].kind) == ("one too many", edits)


def test_plain_text_answer_is_accepted_where_json_was_requested(rig):
    run = asyncio.run(rig.begin(asks=QuestionOptions(shaped=True)))
    rig.with_model([play.RIGHT, play.CARD])
    assert resume_run(rig, run).result == "verified"


def test_code_without_a_file_name_is_matched_by_its_definitions(rig):
    run = asyncio.run(rig.begin())
    rig.with_model(["Like this:\n\n```python\ndef double(number):\n    return number + number\n```\n", play.CARD])
    assert resume_run(rig, run).result == "verified"


def test_prompt_fits_the_context_window_and_omissions_are_reported(rig, monkeypatch):
    long = play.BUGGY + "".join(f"# a remark that takes room, number {number}\n" for number in range(200))
    monkeypatch.setattr(play, "BUGGY", long)
    run = asyncio.run(rig.begin(asks=QuestionOptions(window=3000)))
    model = rig.with_model([play.RIGHT, play.CARD])
    assert resume_run(rig, run).result == "verified"
    patch_ask = next(ask for ask in model.questions if ask.question == "patch")
    assert patch_ask.max_tokens == 1000
    assert sum(estimate_tokens(message.text) for message in patch_ask.messages) <= 2005
    omitted = [event.data["not_shown"] for event in rig.events if "not_shown" in event.data]
    assert len(omitted) == 1
    assert play.CODE in omitted[0][0]


def test_retry_raises_the_temperature(rig):
    run = asyncio.run(rig.begin())
    model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
    resume_run(rig, run)
    assert [ask.temperature for ask in model.questions if ask.question == "patch"] == [0.0, 0.6]


@pytest.mark.parametrize(
    ("edits", "has_shape", "phrase"),
    [
        (EditKind.whole, False, "```python"),
        (EditKind.block, False, "<<<<<<< SEARCH"),
        (EditKind.diff, False, "+++ b/calc.py"),
        (EditKind.envelope, False, "<<<<<<< SEARCH"),
        (EditKind.whole, True, '"edits": [{"path": "calc.py", "text"'),
        (EditKind.block, True, '"edits": [{"path": "calc.py", "search"'),
    ],
)
def test_small_model_gets_a_short_prompt(rig, edits, has_shape, phrase):
    run = asyncio.run(rig.begin(asks=QuestionOptions(edits=edits, shaped=has_shape, brief=True)))
    model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
    assert resume_run(rig, run).result == "verified"
    first_prompt, second_prompt = [ask.messages[1].text for ask in model.questions if ask.question == "patch"]
    assert phrase in first_prompt
    assert "assert 5 == 4" in first_prompt
    assert f'<data from="{play.CODE} lines 1-2">' in first_prompt
    assert play.TESTS + " lines" not in first_prompt
    assert len(first_prompt) < 900
    assert "This was tried and is not right" in second_prompt
    assert "+    return number + number + 2" in second_prompt
    assert "Give another fix" in second_prompt
