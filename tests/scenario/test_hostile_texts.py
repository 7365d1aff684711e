"""No text of a repo, model, report or memory controls the terminal, and a person can read all of it."""

from __future__ import annotations

from pathlib import Path

from support.hostile_texts import PLACES, SEQUENCES, control_signs, places_shown, show_everything
from support.user import User


def test_no_text_that_is_not_ours_steers_the_terminal(user: User, tmp_path: Path) -> None:
    written = show_everything(user, tmp_path)
    assert control_signs(written) == []
    assert len(PLACES) == 40
    assert sorted(set(PLACES) - {*places_shown(written)}) == []


def test_what_comes_through_is_noticed() -> None:
    assert control_signs("\x1b[1mbold\x1b[0m\r\n\x1b[?25l\r\x1b[2Ka line that moves\n") == []
    assert [each for each in SEQUENCES if not control_signs(f"before{each}after")] == []
