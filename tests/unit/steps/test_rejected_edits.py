"""After edits that did not fit, the next question shows them beside the file's own lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.run import RunState
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

TITLE = "## Your last edits that did not fit"
NEAR = play.block("    return number + number + one", "    return number + number")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def run_to_end(rig: Rig, answers: list[str], asks: QuestionOptions | None = None) -> tuple[RunState, list[str]]:
    """Run to the end; return the final state and the questions for edits."""
    model = rig.with_model(answers)

    async def go() -> RunState:
        claim = await rig.adapters.store.claim(await rig.begin(asks=asks or QuestionOptions()))
        return (await drive(rig.adapters, claim, run_inline)).state

    final_state = asyncio.run(go())
    return final_state, [ask.messages[1].text for ask in model.questions if ask.question == "patch"]


@pytest.mark.parametrize("asks", [QuestionOptions(), QuestionOptions(brief=True)], ids=["whole", "brief"])
def test_next_prompt_shows_the_edits_and_the_nearest_lines(rig, asks):
    final_state, (first_prompt, second_prompt) = run_to_end(rig, [NEAR, play.RIGHT, play.CARD], asks)
    assert final_state.result == "verified"
    assert TITLE not in first_prompt
    excerpt = second_prompt[second_prompt.index(TITLE) :]
    assert "<<<<<<< SEARCH\n    return number + number + one\n=======\n    return number + number\n" in excerpt
    assert "the file:\nthe nearest lines are:\n1: def double(number):\n2:     return number + number + 1" in excerpt


def test_every_match_of_an_ambiguous_edit_is_shown(rig, monkeypatch):
    doubled_code = play.BUGGY + "\n\ndef again(number):\n    return number + number + 1\n"
    monkeypatch.setattr(play, "BUGGY", doubled_code)
    ambiguous_edit = play.block(doubled_code.rstrip("\n"), doubled_code.replace(" + 1", "").rstrip("\n"))
    _, (_, second_prompt) = run_to_end(rig, [play.RIGHT, ambiguous_edit, play.CARD])
    excerpt = second_prompt[second_prompt.index(TITLE) :]
    assert "the lines to change are there 2 times (lines 2, 6)" in excerpt
    assert (
        "the places are:\n1: def double(number):\n2:     return number + number + 1\n3: \n--\n5: def again" in excerpt
    )


def test_applied_edits_are_not_shown_as_misfits(rig):
    _, (_, second_prompt) = run_to_end(rig, [play.WRONG, play.RIGHT, play.CARD])
    assert TITLE not in second_prompt


def test_edits_rejected_by_policy_are_not_shown_as_misfits(rig):
    _, (_, second_prompt) = run_to_end(rig, [play.TAMPER, play.RIGHT, play.CARD])
    assert TITLE not in second_prompt


def test_only_the_latest_answer_is_shown(rig):
    _, (_, _, third_prompt) = run_to_end(rig, [NEAR, play.WRONG, play.RIGHT, play.CARD])
    assert TITLE not in third_prompt
