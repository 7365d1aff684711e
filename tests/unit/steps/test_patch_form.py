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
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.ports.store.port.journal import CallPlace, Journal, JournalRecord
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.toolkit.patching.reading.formats import ENOUGH, LONGEST_WHOLE
from redstart.toolkit.prompts.fit import tokens
from support import rig as play
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

WHOLE, ENVELOPE = "all of the file as it shall be", "*** Begin Patch"
ONCE = Limits(attempts=1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def misfits(count: int) -> str:
    """Build an answer with this many blocks that fit nowhere."""
    return "\n".join(
        play.block(f"    return a line {number} that is not there", "    return 0") for number in range(count)
    )


def went_on(rig: Rig, run_id: str) -> RunState:
    async def go() -> RunState:
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, inline)).state

    return asyncio.run(go())


def ran(rig: Rig, answers: list[str], limits: Limits | None = None) -> tuple[RunState, list[str]]:
    """Run to the end; return the final state and the texts of the questions for patches."""
    model = rig.with_model(answers)
    ended = went_on(rig, asyncio.run(rig.begin(limits=limits)))
    return ended, patches(model.asks)


def patches(asks: list[Ask]) -> list[str]:
    return [str(ask.messages) for ask in asks if ask.question == "patch"]


def forms(texts: list[str]) -> list[str]:
    """Return the form that each text asks for. No text names the default form, so it is the fallback."""
    names = {WHOLE: "whole", ENVELOPE: "envelope", "+++ b/path/to/file.py": "diff"}
    return [next((name for words, name in names.items() if words in text), "block") for text in texts]


def test_after_enough_misfits_of_blocks_another_form_is_asked_for(rig):
    _, few = ran(rig, [misfits(ENOUGH - 1)], ONCE)
    ended, more = ran(rig, [misfits(1), play.RIGHT, play.CARD])
    assert (forms(few), forms(more)) == (["block"], ["block", "whole"])
    assert ended.result == "verified"
    tally = asyncio.run(rig.adapters.store.tally(play.WRITER, tenant="home"))
    assert tally == {EditKind.block: FitCounts(1, ENOUGH + 1)}


def test_a_long_file_is_not_asked_for_as_a_whole(rig, monkeypatch):
    ran(rig, [misfits(ENOUGH)], ONCE)
    padding = "# more\n" * (LONGEST_WHOLE - play.BUGGY.count("\n"))
    monkeypatch.setattr(play, "BUGGY", play.BUGGY + padding)
    _, at_the_edge = ran(rig, [play.WRONG, play.CARD], ONCE)
    monkeypatch.setattr(play, "BUGGY", play.BUGGY + "# one more\n")
    _, beyond = ran(rig, [play.WRONG, play.CARD], ONCE)
    assert (forms(at_the_edge), forms(beyond)) == (["whole"], ["envelope"])


def test_what_other_models_did_counts_for_nothing(rig):
    ran(rig, [misfits(ENOUGH)], ONCE)
    rig.adapters = replace(rig.adapters, writer="scripted:other")
    assert forms(ran(rig, [play.RIGHT, play.CARD])[1]) == ["block"]


def test_a_step_that_is_entered_again_asks_in_the_form_it_chose(rig):
    rig.with_model([ModelError("the endpoint is down")])
    broken = asyncio.run(rig.begin())
    with pytest.raises(ModelError):
        went_on(rig, broken)
    ran(rig, [misfits(ENOUGH)], ONCE)
    model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
    assert went_on(rig, broken).result == "verified"
    assert forms(patches(model.asks)) == ["block", "whole"]


def test_a_replay_takes_the_forms_that_were_taken(rig):
    ended, asked = ran(rig, [misfits(ENOUGH), play.RIGHT, play.CARD])
    assert forms(asked) == ["block", "whole"]
    assert asyncio.run(replay(rig.adapters, ended.run_id)).state == ended


class JournalOfBefore:
    """A journal from a version that did not count misfits."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def find(self, call: CallPlace) -> JournalRecord | None:
        return None if call.ordinal == OutsideOrdinal.counted else await self._journal.find(call)

    async def records(self, run_id: str) -> list[JournalRecord]:
        return [
            record for record in await self._journal.records(run_id) if record.call.ordinal != OutsideOrdinal.counted
        ]


def test_a_run_of_before_anything_was_counted_is_replayed_in_blocks(rig):
    ended, _ = ran(rig, [play.WRONG, play.RIGHT, play.CARD])
    ran(rig, [misfits(ENOUGH * 3)], ONCE)
    assert forms(ran(rig, [play.RIGHT, play.CARD])[1]) == ["whole"]
    before = replace(rig.adapters, journal=JournalOfBefore(rig.adapters.journal))
    assert asyncio.run(replay(before, ended.run_id)).state == ended


def test_the_profile_says_which_form_is_usual(rig):
    state = asyncio.run(rig.begin(asks=QuestionOptions(edits=EditKind.whole)))
    model = rig.with_model(
        [f"WHY: w\n\n{play.CODE}\n```\ndef double(number):\n    return number + number\n```\n", play.CARD]
    )
    assert went_on(rig, state).result == "verified"
    assert forms(patches(model.asks)) == ["whole"]


@pytest.mark.parametrize("edits", [EditKind.whole, EditKind.block])
def test_edits_are_asked_for_as_json_where_the_profile_says_so(rig, edits):
    run = asyncio.run(rig.begin(asks=QuestionOptions(edits=edits, shaped=True)))
    whole = {"path": play.CODE, "text": "def double(number):\n    return number + number\n"}
    part = {"path": play.CODE, "search": "    return number + number + 1", "text": "    return number + number"}
    edit = whole if edits is EditKind.whole else part
    model = rig.with_model([json.dumps({"why": "one too many", "edits": [edit]}), play.CARD])
    ended = went_on(rig, run)
    asked = [ask for ask in model.asks if ask.question == "patch"]
    assert ended.result == "verified"
    assert [bool(ask.shape) for ask in asked] == [True]
    assert '"edits": [{"path"' in asked[0].messages[0].text
    assert (ended.now.patch.why, ended.now.apply.rungs[0].kind) == ("one too many", edits)


def test_text_that_was_to_be_json_is_read_all_the_same(rig):
    run = asyncio.run(rig.begin(asks=QuestionOptions(shaped=True)))
    rig.with_model([play.RIGHT, play.CARD])
    assert went_on(rig, run).result == "verified"


def test_code_that_names_no_file_is_put_where_its_names_are(rig):
    run = asyncio.run(rig.begin())
    rig.with_model(["Like this:\n\n```python\ndef double(number):\n    return number + number\n```\n", play.CARD])
    assert went_on(rig, run).result == "verified"


def test_a_question_is_fitted_to_the_window_and_what_is_left_out_is_told(rig, monkeypatch):
    long = play.BUGGY + "".join(f"# a remark that takes room, number {number}\n" for number in range(200))
    monkeypatch.setattr(play, "BUGGY", long)
    run = asyncio.run(rig.begin(asks=QuestionOptions(window=3000)))
    model = rig.with_model([play.RIGHT, play.CARD])
    assert went_on(rig, run).result == "verified"
    asked = next(ask for ask in model.asks if ask.question == "patch")
    assert asked.max_tokens == 1000
    assert sum(tokens(message.text) for message in asked.messages) <= 2005
    told = [event.data["not_shown"] for event in rig.events if "not_shown" in event.data]
    assert len(told) == 1
    assert play.CODE in told[0][0]


def test_who_is_asked_again_is_asked_less_strictly(rig):
    run = asyncio.run(rig.begin())
    model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
    went_on(rig, run)
    assert [ask.temperature for ask in model.asks if ask.question == "patch"] == [0.0, 0.6]


@pytest.mark.parametrize(
    ("edits", "shaped", "word"),
    [
        (EditKind.whole, False, "```python"),
        (EditKind.block, False, "<<<<<<< SEARCH"),
        (EditKind.diff, False, "+++ b/calc.py"),
        (EditKind.envelope, False, "<<<<<<< SEARCH"),
        (EditKind.whole, True, '"edits": [{"path": "calc.py", "text"'),
        (EditKind.block, True, '"edits": [{"path": "calc.py", "search"'),
    ],
)
def test_a_small_model_is_asked_in_few_words(rig, edits, shaped, word):
    run = asyncio.run(rig.begin(asks=QuestionOptions(edits=edits, shaped=shaped, brief=True)))
    model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
    assert went_on(rig, run).result == "verified"
    first, second = [ask.messages[1].text for ask in model.asks if ask.question == "patch"]
    assert word in first
    assert "assert 5 == 4" in first
    assert f'<data from="{play.CODE} lines 1-2">' in first
    assert play.TESTS + " lines" not in first
    assert len(first) < 900
    assert "This was tried and is not right" in second
    assert "+    return number + number + 2" in second
    assert "Give another fix" in second
