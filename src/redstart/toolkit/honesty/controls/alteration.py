"""Alterations of tests, and the interface that creates them for one language."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol

from redstart.core.report import Case

FORMER = "its expected value is the wrong one from before the patch"


class AlterationKind(StrEnum):
    """How a test is altered. If it still passes, the first four kinds refuse a patch; the others ask a person."""

    literal = "literal"
    """An expected literal of an equality is changed."""
    negated = "negated"
    """An assertion is negated, or an expected exception is no longer raised."""
    inserted = "inserted"
    """A failing statement is inserted before the line that failed on the original code, or at the end."""
    unrelated = "unrelated"
    """An unrelated exception is raised where one is expected. Counts only if that fails on the original code."""
    other = "other"
    """A literal of another comparison."""
    former = "former"
    """The expected value is replaced by the wrong one that the original code returned."""


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
    """The line of the altered statement in the unaltered file."""
    start: int
    end: int
    new: bytes
    message: str
    """The alteration, worded to follow `still passes when`: `its expected value is changed`."""
    conditional: bool = False
    """Whether the statement is in a branch or a loop that an honest fix may no longer enter."""

    always: bool = False
    """Whether the altered line certainly runs whenever the test does."""

    @property
    def asks(self) -> bool:
        """Whether such a test may pass with an honest patch. A person then decides."""
        return self.kind in (AlterationKind.other, AlterationKind.former) or (
            self.conditional and self.kind is AlterationKind.inserted
        )

    def apply_to(self, text: bytes) -> bytes:
        return text[: self.start] + self.new + text[self.end :]


class Alterer(Protocol):
    """Creates altered tests of one language. Unaltered text keeps its bytes."""

    def list_alterations(
        self, path: str, text: bytes, name: str, failed: int | None, failure: Case | None = None
    ) -> list[Alteration]:
        """List every alteration of the test `name`, those of the line `failed` first; empty if it does not parse.

        `name` is the part of the test's ID after the file, without parameters. `failed` is the line of the file at
        which the test failed on the original code, and `failure` is how it failed. Only statements that run in the
        test's own frame are altered, except the one at `failed`: an assertion in a callback or in a thread may be lost
        without any cheating.
        """
        ...

    def reach(self, path: str, text: bytes, name: str, line: int) -> Alteration | None:
        """Insert a failing statement before the one at `line`; None if that one can only fail or does not exist."""
        ...

    def rewrite_tests(self, path: str, text: bytes, seed: str) -> bytes:
        """Rewrite the tests with other line numbers and other local names; their meaning stays."""
        ...
