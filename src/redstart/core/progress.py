"""What a step is doing at the moment: shown while it lasts, never stored."""

from __future__ import annotations

from typing import NamedTuple


class Progress(NamedTuple):
    """What is under way in a step. An empty `activity` says that it is over."""

    run: str
    attempt: int
    step: str
    activity: str = ""
    """In a few words: `baseline`, `rerun 2 of 4`, `asking openai:gpt-x`."""
    done: int = 0
    """Tests that have ended."""
    total: int = 0
    """Tests that will run; 0 where nobody knows."""
    seconds: float = 0.0
    """How long it is expected to take; 0 where nobody knows."""
    tokens: int = 0
    """Of the open question, about."""
