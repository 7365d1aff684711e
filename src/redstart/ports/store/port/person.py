"""The port to the person who owns the run."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class PersonReply(NamedTuple):
    """A person's answer to a question of the run."""

    accepts: bool
    text: str = ""


class Person(Protocol):
    """The person who owns the run, as a step sees them. Journaled: on re-entry the recorded input is repeated."""

    async def read_messages(self) -> tuple[str, ...]:
        """Return the person's last few messages, oldest first."""
        ...

    async def answer(self) -> PersonReply | None:
        """Return the answer that the run waits for, or None if there is none yet."""
        ...
