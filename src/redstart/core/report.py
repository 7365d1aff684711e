"""What a test suite said, and what we make of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import cast

from pydantic import Field, model_validator

from redstart.core.change import Snapshot
from redstart.core.learning import Signature
from redstart.core.noun import FrozenValue, clip
from redstart.core.shell import ExitCause

FIRST = 8
"""How many ids or cases the state carries; all of them are in a blob."""
LEAST_KILLED = 0.6
"""The share of small changes to a new program that its tests have to notice."""


class Outcome(StrEnum):
    passed = "passed"
    failed = "failed"
    error = "error"
    skipped = "skipped"


class Case(FrozenValue):
    """One test. `detail` is the runner's whole text on it; the state carries cases without it."""

    id: str
    outcome: Outcome
    message: str = ""
    expected: str | None = None
    actual: str | None = None
    detail: str = ""
    seconds: float = 0.0

    @property
    def red(self) -> bool:
        return self.outcome in (Outcome.failed, Outcome.error)

    def brief(self) -> Case:
        """As the state carries it: every text cut short."""
        return self.model_copy(
            update={
                "id": clip(self.id, 200),
                "message": clip(self.message, 300),
                "expected": None if self.expected is None else clip(self.expected, 100),
                "actual": None if self.actual is None else clip(self.actual, 100),
                "detail": "",
            }
        )


class CaseList(FrozenValue):
    """What the blob of a `Report` holds: every case with all its text."""

    cases: tuple[Case, ...] = ()


class Ids(FrozenValue):
    """Test ids: how many, and the first few."""

    count: int = 0
    first: tuple[str, ...] = ()

    @classmethod
    def of(cls, ids: Iterable[str]) -> Ids:
        every = sorted(set(ids))
        return cls(count=len(every), first=tuple(clip(item, 200) for item in every[:FIRST]))

    def __bool__(self) -> bool:
        return self.count > 0


def digest_of_ids(ids: Iterable[str]) -> str:
    """A short name for a set of test ids; empty for none."""
    every = "\n".join(sorted(set(ids)))
    return hashlib.sha256(every.encode(errors="replace")).hexdigest()[:16] if every else ""


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
    def of(cls, cases: Iterable[Case]) -> OutcomeCounts:
        outcomes = [case.outcome for case in cases]
        return cls(
            passed=outcomes.count(Outcome.passed),
            failed=outcomes.count(Outcome.failed),
            errors=outcomes.count(Outcome.error),
            skipped=outcomes.count(Outcome.skipped),
        )


class Report(FrozenValue):
    """One run of a suite, small enough for the state."""

    runner: str
    counts: OutcomeCounts
    cases: tuple[Case, ...] = ()
    """The first red ones, brief."""
    failing: str = ""
    """Digest of the ids of all red ones; empty where none is red."""
    full: str = ""
    """Blob: a `CaseList`."""
    output: str = ""
    """Blob: what the runner printed."""
    cause: ExitCause
    exit_code: int
    seconds: float = 0.0
    signature: Signature | None = None
    """Of the first red case."""
    plugins: str = ""
    """Blob: the plugins that took part, one a line; empty where the runner did not say."""
    fault: str = ""
    """Why there are no results per test, where there are none."""


class Repeat(FrozenValue):
    """One more run of the targets, with one thing done in another way than in the first."""

    patched: bool
    """Whether it ran on the patch; otherwise on the code without it."""
    varied: str
    """What was other: `hash seed`, `random seed`, `time zone`, `order`; empty for nothing."""
    green: int = 0
    red: int = 0


class Verdict(FrozenValue):
    """Whether a patch is a fix, by test id against the baseline."""

    fixed: Ids = Ids()
    still_red: Ids = Ids()
    newly_red: Ids = Ids()
    missing: Ids = Ids()
    newly_skipped: Ids = Ids()
    flaky: Ids = Ids()
    """Of the fixed ones, those that a repeat saw otherwise."""
    green_without: Ids = Ids()
    """Targets that pass without the patch as well, so that it cannot have been what fixed them."""
    refuted: tuple[str, ...] = Field(default=(), exclude_if=lambda words: not words)
    """In a sentence each, what shows that a target no longer tests the code: `test_total still passes when ...`."""
    tampered: tuple[str, ...] = ()
    """What only a person may approve: test files or test configuration that the patch changed, and doubts about it."""
    unexplained: str = ""
    """Where the exit code and the report contradict each other."""

    @model_validator(mode="before")
    @classmethod
    def _drop_old_field(cls, values: object) -> object:
        """Earlier versions stored `new_findings`, always 0: a patch with new findings never gets to its tests."""
        if not isinstance(values, dict):
            return values
        given = cast("dict[str, object]", values)
        return {name: value for name, value in given.items() if name != "new_findings"}

    @property
    def asks(self) -> bool:
        """Whether it would be green with a person's yes to what it changes of the tests."""
        return bool(self.tampered) and self.model_copy(update={"tampered": ()}).honest_green

    @property
    def honest_green(self) -> bool:
        worse = (self.still_red, self.newly_red, self.missing, self.newly_skipped, self.flaky, self.green_without)
        return bool(self.fixed) and not any(worse) and not (self.refuted or self.tampered or self.unexplained)


class CheckEvidence(FrozenValue):
    """What one check of a green found: of how many targets it could say something, and why not of the others."""

    check: str
    """`control`, `neutral`, `files`, `assertions`, `data` or `nearby`."""
    targets: int
    covered: int
    runs: int = 0
    notes: tuple[str, ...] = Field(default=(), max_length=20)
    """Why targets are not covered, what was left out of the check, and what it saw, in a sentence each."""


class Mutants(FrozenValue):
    """Whether the tests of a new program notice when it is broken: small changes to it, each tried on its own."""

    sampled: int
    killed: int
    """Those that made a test red."""
    survivors: tuple[str, ...] = Field(default=(), max_length=10)
    """Those that no test noticed, in words without any of the code."""

    @property
    def too_many_survive(self) -> bool:
        return self.killed < LEAST_KILLED * self.sampled

    @property
    def words(self) -> str:
        """What the tests do not notice, for whoever writes better ones."""
        return clip("the tests do not notice when, " + "; ".join(self.survivors), 900)


class PatchTestResult(FrozenValue):
    """What the step `test` gives: the last report, the verdict over all runs, and what a probe printed."""

    report: Report
    verdict: Verdict = Verdict()
    runs: int = 1
    repeats: tuple[Repeat, ...] = ()
    unsteady: Ids = Ids()
    """Tests beside the targets that were red in one run on this patch and green in the next: not held against it."""
    shrunk: Snapshot | None = None
    """The patch without what green does not need; None where all of it is needed, or it was not tried."""
    shrunk_diff: str = ""
    """Blob."""
    dropped: int = 0
    """Hunks that were left out of it."""
    probe: str = ""
    """Blob: what a probe printed."""
    evidence: tuple[CheckEvidence, ...] = Field(default=(), exclude_if=lambda found: not found)
    """What the checks of a green found, beside the repeats."""
    mutants: Mutants | None = Field(default=None, exclude_if=lambda found: found is None)
    """Of a new program that is green; None where too little of it can be changed to say anything."""


class ReproductionProblem(StrEnum):
    """Why a run cannot go on from its baseline."""

    none = ""
    already_green = "already_green"
    no_tests = "no_tests"
    no_usable_test = "no_usable_test"
    """A model was asked for a failing test in vain."""
    flaky = "flaky"
    environment = "environment"


class ReproductionResult(FrozenValue):
    """Red, or the reason why there is no red to start from."""

    report: Report
    targets: Ids = Ids()
    targets_full: str = ""
    """Blob: the ids of all targets, one a line."""
    language: str = Field(default="", exclude_if=lambda name: not name)
    """What the targets are written in, where Redstart cannot alter such tests; empty for Python and JavaScript."""
    trouble: ReproductionProblem = ReproductionProblem.none
    over_budget: bool = Field(default=False, exclude_if=lambda over: not over)
    """Whether the model was not asked for tests because the call could exceed a limit."""
    remedy: str = ""
    """Where there is trouble: what it is and what to do. Otherwise what to do about the first of `grounds`."""
    flaky: tuple[str, ...] = ()
    """Red tests that are no targets because a repeat saw them green: the first few, each with what was varied."""
    repeats: tuple[Repeat, ...] = ()
    forecast: float = 0.0
    """Seconds that the proof of a green will take, after the attempt that reaches it."""
    grounds: tuple[str, ...] = ()
    """Why some red tests are no targets: no edit can make them green. The first few reasons, each with its tests."""
    tests: tuple[str, ...] = ()
    """Paths of test files that were written for this run."""
    command: tuple[str, ...] = ()
    """The test command with those files in it, where it names files; empty where it stays as it is."""
    written: int = Field(default=0, exclude_if=lambda count: not count)
    """How many tests those hold (create): a file that cannot be imported yet is one failure to its runner."""
    sure: str = ""
    """`high`, `medium` or `low`: how sure the model is that they are what was meant; empty where it did not say."""
    sure_why: str = ""
    snapshot: Snapshot | None = None
    """The base with those tests in it."""
    spectrum: str = ""
    """Blob: the `Spectrum` of the targets; empty where the code is small enough to be shown whole, or none was seen."""
