"""In which form a model is asked for edits: the one in which its edits have fitted best so far."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.change import EditKind, Tally
from redstart.core.chat import Ask
from redstart.core.errors import ModelError
from redstart.core.run import Limits, RunState
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.ports.store.port import COUNTED, Call, Journal, Record
from redstart.testing import rig as play
from redstart.testing.rig import Rig, make_rig
from redstart.toolkit.patching.formats import ENOUGH, LONGEST_WHOLE

WHOLE, ENVELOPE = "Give whole files instead", "Give one patch instead"
ONCE = Limits(iterations=1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def misfits(count: int) -> str:
    """An answer with so many blocks that fit nowhere."""
    return "\n".join(
        play.block(f"    return a line {number} that is not there", "    return 0") for number in range(count)
    )


def went_on(rig: Rig, run_id: str) -> RunState:
    async def go() -> RunState:
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, inline)).state

    return asyncio.run(go())


def ran(rig: Rig, answers: list[str], limits: Limits | None = None) -> tuple[RunState, list[str]]:
    """A new run to its end, and the texts in which it asked for patches."""
    model = rig.with_model(answers)
    ended = went_on(rig, asyncio.run(rig.begin(limits=limits)))
    return ended, patches(model.asks)


def patches(asks: list[Ask]) -> list[str]:
    return [str(ask.messages) for ask in asks if ask.question == "patch"]


def forms(texts: list[str]) -> list[str]:
    """Which form each of them asks for, the usual one being said nowhere."""
    names = {WHOLE: "whole", ENVELOPE: "envelope", "Give unified diffs instead": "diff"}
    return [next((name for words, name in names.items() if words in text), "block") for text in texts]


def test_after_enough_misfits_of_blocks_another_form_is_asked_for(rig):
    _, few = ran(rig, [misfits(ENOUGH - 1)], ONCE)
    ended, more = ran(rig, [misfits(1), play.RIGHT, play.CARD])
    assert (forms(few), forms(more)) == (["block"], ["block", "whole"])
    assert ended.result == "verified"
    tally = asyncio.run(rig.adapters.store.tally(play.WRITER, tenant="home"))
    assert tally == {EditKind.block: Tally(1, ENOUGH + 1)}


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
    """A journal as it was left when nothing was counted."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def find(self, call: Call) -> Record | None:
        return None if call.ordinal == COUNTED else await self._journal.find(call)

    async def records(self, run_id: str) -> list[Record]:
        return [one for one in await self._journal.records(run_id) if one.call.ordinal != COUNTED]


def test_a_run_of_before_anything_was_counted_is_replayed_in_blocks(rig):
    ended, _ = ran(rig, [play.WRONG, play.RIGHT, play.CARD])
    ran(rig, [misfits(ENOUGH * 3)], ONCE)
    assert forms(ran(rig, [play.RIGHT, play.CARD])[1]) == ["whole"]
    before = replace(rig.adapters, journal=JournalOfBefore(rig.adapters.journal))
    assert asyncio.run(replay(before, ended.run_id)).state == ended
