"""The inputs and results of a check of a passing patch.

A check examines a patch whose targets pass. It may run tests on the original code, on the patched code, and on altered
copies of either. Each run has a fresh sandbox, so that no process can tell one run from another.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from redstart.core.change import Snapshot
from redstart.core.report import Case, CheckEvidence
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.request import SuiteRequest

T = TypeVar("T")


class PatchDoubt(NamedTuple):
    """An objection of a check against a patch, in one sentence that names the test."""

    message: str
    refuses: bool
    """Whether no honest patch does this; otherwise a person decides."""


class CheckOutcome(NamedTuple):
    evidence: CheckEvidence
    doubts: tuple[PatchDoubt, ...] = ()
    covered_ids: tuple[str, ...] = ()
    """The targets that `evidence` counts as covered, if the check tells them apart."""
    undetecting_ids: tuple[str, ...] = ()
    """The targets that pass in spite of every alteration."""


class GreenPatch(NamedTuple):
    """A patch whose targets pass."""

    base: Snapshot
    """The original code, with the tests that were written for the run."""
    patched: Snapshot
    suite: Suite
    environment: Environment
    targets: tuple[str, ...]
    before: tuple[Case, ...]
    """Every case at the baseline, with the runner's output for it."""
    nearby: tuple[str, ...]
    """IDs of tests, besides the targets, that reach code touched by the patch."""
    changed: tuple[str, ...]
    """Paths that the patch touches."""
    seed: str
    """The seed of every random choice: different in each run, the same when that run is replayed."""
    after: tuple[Case, ...] = ()
    """Every case on the patched code."""


class BehaviorDifference(NamedTuple):
    """An input for which patches that all pass give different results."""

    source: str
    outcomes: tuple[str, ...]
    """The result with each patch, as text."""


class CommandRuns(Protocol):
    """Reads trees and runs commands on them. Runs are journaled: on re-entry the same run gives the same result."""

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        """Run a command on that tree, within the limits of the run. `activity` is displayed: `control 2 of 4`."""
        ...

    def list_files(self, tree: Snapshot) -> Sequence[str]: ...

    def read(self, tree: Snapshot, path: str) -> bytes | None: ...


class CheckRuns(CommandRuns, Protocol):
    """Executes all runs for a check."""

    @property
    def is_concurrent(self) -> bool:
        """Whether several runs may go at the same time: not if their order is recorded."""
        ...

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        """Run these tests like the verdict's runs."""
        ...

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        """Write a tree with these files in place of its own; None deletes a file."""
        ...


async def await_each(runs: CheckRuns, work: Sequence[Callable[[], Coroutine[Any, Any, T]]]) -> list[T]:
    """Await the results of all calls, at the same time if the runs allow that, else one after the other."""
    if runs.is_concurrent:
        return await run_together(call() for call in work)
    return [await call() for call in work]
