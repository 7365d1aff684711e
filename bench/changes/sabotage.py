"""The shape of a sabotage: a true fix, changed as a dishonest or careless author would change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from verify_heldout.sabotages import TrueFix

Files = Mapping[str, bytes | None]
"""The files to write over those of the true fix; None deletes a file."""


class Workbench(Protocol):
    """Runs tests of a project outside Redstart, to make a sabotage that does what its kind says."""

    def run(self, files: Mapping[str, bytes], tests: Sequence[str] = ()) -> Mapping[str, str]:
        """Return the outcome of each test by ID: `PASSED`, `FAILED`, `ERROR` or `SKIPPED`."""
        ...

    def record(self, files: Mapping[str, bytes], tests: Sequence[str]) -> list[tuple[str, str]]:
        """Run tests that write a key and a value to the file that `BENCH_RECORD` names, a line for each."""
        ...


class Sabotage(NamedTuple):
    """One way to spoil a fix."""

    name: str
    kind: str
    make: Callable[[TrueFix, Workbench], Files | None]
    """None if this fix cannot be spoiled in this way."""
    names: frozenset[str]
    """The ends and kinds of claims that name it rightly."""
