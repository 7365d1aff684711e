"""The port to the person whose run it is."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class PersonReply(NamedTuple):
    """A person's answer to what the run asked."""

    accepts: bool
    text: str = ""


class Person(Protocol):
    """The person whose run it is, as a step hears them. Journaled: what was heard once is heard again on re-entry."""

    async def said(self) -> tuple[str, ...]:
        """The last few things that they said, oldest first."""
        ...

    async def answer(self) -> PersonReply | None:
        """Their answer to what the run waits for; None where there is none yet."""
        ...
