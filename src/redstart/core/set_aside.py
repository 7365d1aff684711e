"""Failing tests that a run sets aside, because something other than the code makes them fail."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import Field

from redstart.core.frozen import FrozenValue

LONGEST_REASON = 600


class SetAsidePolicy(StrEnum):
    """Whether failing tests may be set aside, and who decides."""

    never = "never"
    """The code is to blame for every failing test that lacks nothing. For runs from before the policy existed."""
    all_red = "all_red"
    """Every failing test is a target, whatever it lacks: `--all-red`."""
    ask = "ask"
    """A person decides on what a model says."""
    alone = "alone"
    """Nobody can be asked: what a model says is accepted, and the result is `partial` at best."""

    @property
    def allows(self) -> bool:
        """Whether a failing test may be set aside."""
        return self in (SetAsidePolicy.ask, SetAsidePolicy.alone)


class SetAsideSource(StrEnum):
    """Who says that the tests fail for another reason."""

    model = "model"
    redstart = "redstart"
    unsolved = "unsolved"
    """Nobody: no attempt fixed them, but a patch fixes the others."""


class NamedTests(FrozenValue):
    """Test IDs: their number, the first few, and the blob with all of them."""

    count: int = 0
    first: tuple[str, ...] = ()
    full: str = ""
    """Blob: the IDs, one per line."""


class SetAside(FrozenValue):
    """Failing tests that the code is not to blame for, with the reason."""

    tests: NamedTests
    reason: str
    source: SetAsideSource
    approved: bool = Field(default=False, exclude_if=lambda approved: not approved)
    """Whether a person agreed."""
    ignored: tuple[str, ...] = Field(default=(), exclude_if=lambda ids: not ids)
    """Names in a model's answer that are no targets: the first few."""


def list_unapproved(entries: Iterable[SetAside]) -> tuple[SetAside, ...]:
    """List what no person has agreed to."""
    return tuple(entry for entry in entries if not entry.approved)


def list_claims(entries: Iterable[SetAside]) -> tuple[SetAside, ...]:
    """List what the code is not to blame for, without the tests that no attempt fixed."""
    return tuple(entry for entry in entries if entry.source is not SetAsideSource.unsolved)


def approve(entries: Iterable[SetAside]) -> tuple[SetAside, ...]:
    """Mark all of it as agreed to by a person."""
    return tuple(entry.model_copy(update={"approved": True}) for entry in entries)
