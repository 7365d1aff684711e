"""No text of a repo, model, report or memory controls the terminal, and a person can read all of it."""

from __future__ import annotations

from pathlib import Path

from support.hostile_texts import PLACES, SEQUENCES, control_signs, list_shown_places, show_everything
from support.user import User


def test_untrusted_text_cannot_control_the_terminal(user: User, tmp_path: Path) -> None:
    output = show_everything(user, tmp_path)
    assert control_signs(output) == []
    assert len(PLACES) == 40
    assert sorted(set(PLACES) - {*list_shown_places(output)}) == []


def test_control_sequences_are_detected() -> None:
    assert control_signs("\x1b[1mbold\x1b[0m\r\n\x1b[?25l\r\x1b[2Ka line that moves\n") == []
    assert [sequence for sequence in SEQUENCES if not control_signs(f"before{sequence}after")] == []
