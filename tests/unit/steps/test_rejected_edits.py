"""After edits that did not fit, the next question shows them beside the file's own lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.run import RunState
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from support import rig as play
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

TITLE = "## Your last edits that did not fit"
NEAR = play.block("    return number + number + one", "    return number + number")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def ran(rig: Rig, answers: list[str], asks: QuestionOptions | None = None) -> tuple[RunState, list[str]]:
    """Run to the end; return the final state and the questions for edits."""
    model = rig.with_model(answers)

    async def go() -> RunState:
        claim = await rig.adapters.store.claim(await rig.begin(asks=asks or QuestionOptions()))
        return (await drive(rig.adapters, claim, inline)).state

    ended = asyncio.run(go())
    return ended, [ask.messages[1].text for ask in model.asks if ask.question == "patch"]


@pytest.mark.parametrize("asks", [QuestionOptions(), QuestionOptions(brief=True)], ids=["whole", "brief"])
def test_the_next_question_shows_the_edits_and_the_nearest_lines(rig, asks):
    ended, (first, second) = ran(rig, [NEAR, play.RIGHT, play.CARD], asks)
    assert ended.result == "verified"
    assert TITLE not in first
    shown = second[second.index(TITLE) :]
    assert "<<<<<<< SEARCH\n    return number + number + one\n=======\n    return number + number\n" in shown
    assert "the file:\nthe nearest lines are:\n1: def double(number):\n2:     return number + number + 1" in shown


def test_the_places_of_an_edit_that_fits_several_are_shown(rig, monkeypatch):
    twice = play.BUGGY + "\n\ndef again(number):\n    return number + number + 1\n"
    monkeypatch.setattr(play, "BUGGY", twice)
    both = play.block(twice.rstrip("\n"), twice.replace(" + 1", "").rstrip("\n"))
    _, (_, second) = ran(rig, [play.RIGHT, both, play.CARD])
    shown = second[second.index(TITLE) :]
    assert "the lines to change are there 2 times (lines 2, 6)" in shown
    assert "the places are:\n1: def double(number):\n2:     return number + number + 1\n3: \n--\n5: def again" in shown


def test_edits_that_were_applied_are_not_shown_as_misfits(rig):
    _, (_, second) = ran(rig, [play.WRONG, play.RIGHT, play.CARD])
    assert TITLE not in second


def test_edits_that_policy_refused_are_not_shown_as_misfits(rig):
    _, (_, second) = ran(rig, [play.TAMPER, play.RIGHT, play.CARD])
    assert TITLE not in second


def test_only_the_last_answer_is_shown(rig):
    _, (_, _, third) = ran(rig, [NEAR, play.WRONG, play.RIGHT, play.CARD])
    assert TITLE not in third
