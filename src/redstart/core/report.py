"""The results of a test suite, and the verdict on them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import cast

from pydantic import Field, model_validator

from redstart.core.change import Snapshot
from redstart.core.frozen import FrozenValue, clip
from redstart.core.learning import Signature
from redstart.core.set_aside import SetAside
from redstart.core.shell import ExitCause

FIRST = 8
"""Maximum test IDs or cases in the run state. The blob holds all of them."""
CAPTURED_LIMIT = 2000
"""Bytes of standard output, and of standard error, that a case keeps: head and tail."""
LEAST_KILLED = 0.6
"""Minimum share of the small changes to a new program that its tests must detect."""


class Outcome(StrEnum):
    passed = "passed"
    failed = "failed"
    error = "error"
    skipped = "skipped"


class Case(FrozenValue):
    """One test. `detail` is the full text of the runner; the run state carries cases without it."""

    id: str
    outcome: Outcome
    message: str = ""
    expected: str | None = None
    actual: str | None = None
    detail: str = ""
    seconds: float = 0.0
    stdout: str = Field(default="", exclude_if=lambda text: not text)
    """What the test printed, clipped; empty if the runner does not attribute output to tests."""
    stderr: str = Field(default="", exclude_if=lambda text: not text)
    """What the test printed as errors or logged, clipped."""

    @property
    def is_red(self) -> bool:
        return self.outcome in (Outcome.failed, Outcome.error)

    def shorten(self) -> Case:
        """Return the case as the run state carries it: every text is clipped, `detail` and output are empty."""
        return self.model_copy(
            update={
                "id": clip(self.id, 200),
                "message": clip(self.message, 300),
                "expected": None if self.expected is None else clip(self.expected, 100),
                "actual": None if self.actual is None else clip(self.actual, 100),
                "detail": "",
                "stdout": "",
                "stderr": "",
            }
        )


class CaseList(FrozenValue):
    """The content of a report's blob: every case with its full text."""

    cases: tuple[Case, ...] = ()


class Ids(FrozenValue):
    """The number of test IDs, and the first few."""

    count: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def from_ids(cls, ids: Iterable[str]) -> Ids:
        sorted_ids = sorted(set(ids))
        return cls(count=len(sorted_ids), first=tuple(clip(item, 200) for item in sorted_ids[:FIRST]))

    def __bool__(self) -> bool:
        return self.count > 0


def compute_ids_digest(ids: Iterable[str]) -> str:
    """Return a short digest of a set of test IDs; empty for no IDs."""
    joined_ids = "\n".join(sorted(set(ids)))
    return hashlib.sha256(joined_ids.encode(errors="replace")).hexdigest()[:16] if joined_ids else ""


class OutcomeCounts(FrozenValue):
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.errors + self.skipped

    @property
    def red(self) -> int:
        return self.failed + self.errors

    @classmethod
    def from_cases(cls, cases: Iterable[Case]) -> OutcomeCounts:
        outcomes = [case.outcome for case in cases]
        return cls(
            passed=outcomes.count(Outcome.passed),
            failed=outcomes.count(Outcome.failed),
            errors=outcomes.count(Outcome.error),
            skipped=outcomes.count(Outcome.skipped),
        )


class Report(FrozenValue):
    """One run of a suite, small enough for the run state."""

    runner: str
    counts: OutcomeCounts
    cases: tuple[Case, ...] = ()
    """The first failing cases, shortened."""
    failing: str = ""
    """Digest of the IDs of all failing tests; empty if none fails."""
    full: str = ""
    """Blob: a `CaseList`."""
    output: str = ""
    """Blob: the output of the runner."""
    cause: ExitCause
    exit_code: int
    seconds: float = 0.0
    signature: Signature | None = None
    """The signature of the first failing case."""
    plugins: str = ""
    """Blob: the active plugins, one per line; empty if the runner did not list them."""
    fault: str = ""
    """Why there are no results per test; empty if there are."""


class Repeat(FrozenValue):
    """A rerun of the targets in which one condition differs from the first run."""

    patched: bool
    """Whether it ran on the patched code; otherwise on the code without the patch."""
    varied: str
    """What differed: `hash seed`, `random seed`, `time zone`, `order`; empty for nothing."""
    green: int = 0
    red: int = 0


class Verdict(FrozenValue):
    """Whether a patch is a fix: the tests compared with the baseline by ID."""

    fixed: Ids = Ids()
    still_red: Ids = Ids()
    newly_red: Ids = Ids()
    missing: Ids = Ids()
    newly_skipped: Ids = Ids()
    flaky: Ids = Ids()
    """Fixed tests with a different outcome in a rerun."""
    changed: Ids = Field(default=Ids(), exclude_if=lambda ids: not ids)
    """Tests that were set aside and do not fail as they did before the patch."""
    green_without: Ids = Ids()
    """Targets that also pass without the patch, so the patch cannot have fixed them."""
    refuted: tuple[str, ...] = Field(default=(), exclude_if=lambda reasons: not reasons)
    """Why a target no longer tests the code, one sentence each: `test_total still passes when ...`."""
    tampered: tuple[str, ...] = ()
    """What only a person may approve: test files or test configuration that the patch changed, and doubts about it."""
    unexplained: str = ""
    """How the exit code and the report contradict each other; empty if they agree."""

    @model_validator(mode="before")
    @classmethod
    def _drop_old_field(cls, values: object) -> object:
        """Drop `select_new_findings`, which earlier versions stored. It was always 0: a patch with new findings is not
        tested."""
        if not isinstance(values, dict):
            return values
        fields = cast("dict[str, object]", values)
        return {name: value for name, value in fields.items() if name != "new_findings"}

    @property
    def asks(self) -> bool:
        """Whether the verdict would be green if a person approved the changes to the tests."""
        return bool(self.tampered) and self.model_copy(update={"tampered": ()}).is_green

    @property
    def is_green(self) -> bool:
        worse = (self.newly_red, self.missing, self.newly_skipped, self.changed)
        problems = (self.still_red, *worse, self.flaky, self.green_without)
        return bool(self.fixed) and not any(problems) and not (self.refuted or self.tampered or self.unexplained)


class CheckEvidence(FrozenValue):
    """The result of one check of a green patch: how many targets it covers, and why it does not cover the others."""

    check: str
    """`control`, `neutral`, `files`, `assertions`, `data` or `nearby`."""
    targets: int
    covered: int
    runs: int = 0
    notes: tuple[str, ...] = Field(default=(), max_length=20)
    """Why targets are not covered, what the check left out, and what it observed, one sentence each."""


class Mutants(FrozenValue):
    """Whether the tests of a new program detect a broken one: small changes to it, each tried on its own."""

    sampled: int
    killed: int
    """Changes that made a test fail."""
    survivors: tuple[str, ...] = Field(default=(), max_length=10)
    """Changes that no test detected, described without quoting the code."""

    @property
    def too_many_survive(self) -> bool:
        return self.killed < LEAST_KILLED * self.sampled

    @property
    def words(self) -> str:
        """Describe what the tests do not detect, for whoever writes better tests."""
        return clip("the tests do not notice when, " + "; ".join(self.survivors), 900)


class ShrinkEnd(StrEnum):
    """How the search for hunks that a green patch does not need ended."""

    complete = ""
    """No hunk was left to try, or the search was not part of the run. Runs of earlier versions have this value too."""
    limit = "limit"
    """The limit on runs or time was reached first."""
    failed = "failed"
    """All tests did not pass on the smaller patch, so the whole patch was kept."""


class PatchTestResult(FrozenValue):
    """The result of the step `test`: the last report, the verdict over all runs, and the output of a probe."""

    report: Report
    verdict: Verdict = Verdict()
    runs: int = 1
    repeats: tuple[Repeat, ...] = ()
    unsteady: Ids = Ids()
    """Other tests that failed in one run on this patch and passed in the next: they do not count against it."""
    shrunk: Snapshot | None = None
    """The snapshot without the hunks that are not needed; None if none was left out, or shrinking was not tried."""
    shrunk_diff: str = ""
    """Blob: the diff of `shrunk`."""
    dropped: int = 0
    """Hunks that `shrunk` leaves out."""
    shrink_end: ShrinkEnd = Field(default=ShrinkEnd.complete, exclude_if=lambda end: not end)
    probe: str = ""
    """Blob: the output of a probe."""
    evidence: tuple[CheckEvidence, ...] = Field(default=(), exclude_if=lambda found: not found)
    """The results of the checks of a green patch, besides the reruns."""
    mutants: Mutants | None = Field(default=None, exclude_if=lambda found: found is None)
    """Set for a new program whose tests pass; None if too little of it can be changed for a meaningful result."""


class ReproductionProblem(StrEnum):
    """Why a run cannot go on from its baseline."""

    none = ""
    already_green = "already_green"
    no_tests = "no_tests"
    no_usable_test = "no_usable_test"
    """The model did not write a usable failing test."""
    flaky = "flaky"
    environment = "environment"


class ReproductionResult(FrozenValue):
    """The failing tests to start from, or the reason why there are none."""

    report: Report
    targets: Ids = Ids()
    targets_full: str = ""
    """Blob: the IDs of all targets, one per line."""
    language: str = Field(default="", exclude_if=lambda name: not name)
    """The language of the targets if Redstart cannot alter such tests; empty for Python and JavaScript."""
    trouble: ReproductionProblem = ReproductionProblem.none
    over_budget: bool = Field(default=False, exclude_if=lambda exceeded: not exceeded)
    """Whether the model was not asked for tests because the call could exceed a limit."""
    remedy: str = ""
    """With `trouble`: what the problem is and what to do. Otherwise what to do about the first of `grounds`."""
    flaky: tuple[str, ...] = ()
    """Failing tests that are not targets because they passed in a rerun: the first few, each with what was varied."""
    already_red: Ids = Field(default=Ids(), exclude_if=lambda ids: not ids)
    """Failing tests that are not targets because they fail where the branch began too."""
    repeats: tuple[Repeat, ...] = ()
    forecast: float = 0.0
    """Estimated seconds to prove a green patch, after the attempt that produces it."""
    grounds: tuple[str, ...] = ()
    """Why some failing tests are not targets: no edit can make them pass. The first few reasons, each with its
    tests."""
    set_aside: tuple[SetAside, ...] = Field(default=(), exclude_if=lambda entries: not entries)
    """Selected failing tests that are not targets because something other than the code makes them fail."""
    tests: tuple[str, ...] = ()
    """Paths of test files that were written for this run."""
    command: tuple[str, ...] = ()
    """The test command with those files added, if it names files; empty if it does not change."""
    written: int = Field(default=0, exclude_if=lambda count: not count)
    """How many tests those files hold (create). The runner counts a file that cannot be imported yet as one failure."""
    sure: str = ""
    """The model's confidence that the tests match the issue: `high`, `medium` or `low`; empty if not stated."""
    sure_why: str = ""
    snapshot: Snapshot | None = None
    """The base with those tests."""
    spectrum: str = ""
    """Blob: the `Spectrum` of the targets; empty if the code is small enough to be shown in full, or nothing was
    traced."""
