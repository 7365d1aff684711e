"""An altered test, and what makes them for one language."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from redstart.core.report import Case

FORMER = "its expected value is the wrong one from before the patch"


class AlterationKind(StrEnum):
    """How a test is altered. Where it still passes, the first four refuse a patch, and the others ask a person."""

    literal = "literal"
    """An expected literal of an equality is changed."""
    negated = "negated"
    """An assertion is turned round, or an expected exception no longer raised."""
    inserted = "inserted"
    """A failing statement stands before the line that failed on the original code, or at the end."""
    unrelated = "unrelated"
    """Where an exception is expected, an unrelated one is raised. Counts only if that fails on the original code."""
    other = "other"
    """A literal of another comparison."""
    former = "former"
    """The expected value is replaced by the wrong one that the original code gave."""


MOST_TELLING_FIRST = (
    AlterationKind.former,
    AlterationKind.literal,
    AlterationKind.inserted,
    AlterationKind.negated,
    AlterationKind.unrelated,
    AlterationKind.other,
)
"""The kinds in the order in which alterations of one test are tried."""


class Alteration(NamedTuple):
    """One edit of a test file: the bytes `start` to `end` become `new`. The test's path and name stay."""

    kind: AlterationKind
    line: int
    """Of the altered statement in the unaltered file."""
    start: int
    end: int
    new: bytes
    words: str
    """What was done, to follow `still passes when`: `its expected value is changed`."""
    conditional: bool = False
    """Whether the statement is in a branch or a loop, which an honest fix may empty."""

    always: bool = False
    """Whether it is certain that the altered line runs whenever the test does."""

    @property
    def asks(self) -> bool:
        """Whether an honest patch may leave such a test green, so that a person is asked."""
        return self.kind in (AlterationKind.other, AlterationKind.former) or (
            self.conditional and self.kind is AlterationKind.inserted
        )

    def of(self, text: bytes) -> bytes:
        return text[: self.start] + self.new + text[self.end :]


class Alterer(Protocol):
    """Makes altered tests of one language. Edits in place: whatever is not altered keeps its bytes."""

    def alterations(
        self, path: str, text: bytes, name: str, failed: int | None, seen: Case | None = None
    ) -> list[Alteration]:
        """Every alteration of the test `name`, those of the line `failed` first; none where it cannot be read.

        `name` is what follows the file in the test's id, without parameters. `failed` is the line of the file at which
        the test failed on the original code, and `seen` how it failed. Only statements that run in the test's own frame
        are altered, but for the one at `failed`: an assertion in a callback or in a thread may be lost
        without any cheating.
        """
        ...

    def reach(self, path: str, text: bytes, name: str, line: int) -> Alteration | None:
        """A failing statement before the one at `line`; None where that can only fail, or there is none."""
        ...

    def harmless(self, path: str, text: bytes, seed: str) -> bytes:
        """The same tests with other line numbers and other names of locals: they mean what they meant."""
        ...
