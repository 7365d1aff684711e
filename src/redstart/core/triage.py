"""Whose fault each failing test is. Every docstring here is a description in the schema."""

from __future__ import annotations

from enum import StrEnum

from redstart.core.report import OutcomeCounts
from redstart.core.verification import CodeVersion, VerificationPart


class TriageEnd(StrEnum):
    """How a triage ended."""

    green = "green"
    """No test fails."""
    yours = "yours"
    """A test fails on the head and passes on the base."""
    not_yours = "not_yours"
    """Tests fail, and none of them because of the change."""
    environment = "environment"
    """The tests cannot run here, or a test newly lacks something of this machine."""
    no_tests = "no_tests"


class FailureOrigin(StrEnum):
    """Whose fault a failing test is."""

    yours = "yours"
    """The test passes on the base, or does not exist there."""
    already_red = "already_red"
    """The test fails on the base too."""
    flaky = "flaky"
    """The test passes in one run and fails in another on the same code."""
    environment = "environment"
    """The test fails because of something that this machine lacks."""
    not_reproduced = "not_reproduced"
    """The test failed in the given report or log, and passes in each run here."""
    undecided = "undecided"
    """The tests of the base do not run here."""


class BaseResult(StrEnum):
    """How a test ended on the base."""

    passed = "passed"
    failed = "failed"
    skipped = "skipped"
    absent = "absent"
    """The test does not exist there."""
    not_run = "not_run"


class FlakeCause(StrEnum):
    """What a flaky test depends on."""

    order = "order"
    """The tests that run before it."""
    time = "time"
    """The time zone, and with it the date."""
    seed = "seed"
    """The seed of random generators."""
    hash_seed = "hash_seed"
    """The order of sets."""
    leftover_file = "leftover_file"
    """A file that another test or an earlier run left behind."""
    network = "network"
    """A connection."""
    chance = "chance"
    """Its result differs although nothing else does: unseeded random numbers, timing, threads."""


class FirstBad(VerificationPart):
    """The first commit at which a test fails."""

    commit: str = ""
    """Its ID; empty for uncommitted changes."""
    subject: str
    """The first line of its message; `working tree` for uncommitted changes."""
    author: str = ""
    date: str = ""
    """The author's date, as YYYY-MM-DD."""
    added: bool = False
    """Whether the test does not exist before this commit."""
    unknown: tuple[str, ...] = ()
    """The commits right before it at which the test has no result: one of them may be the first bad one."""


class SkippedCommit(VerificationPart):
    """A commit at which tests could not run."""

    commit: str
    subject: str
    reason: str


class Bisection(VerificationPart):
    """The search for the first bad commits."""

    commits: int
    """Number of commits that were searched."""
    suite_runs: int
    """Number of commits whose tests ran."""
    skipped: tuple[SkippedCommit, ...] = ()


class FailingTest(VerificationPart):
    """A test that fails on the head."""

    test: str
    origin: FailureOrigin
    base: BaseResult = BaseResult.not_run
    failure: str = ""
    """The first line of the failure."""
    note: str = ""
    """Why it is of this origin, in a few words, if that is not obvious."""
    remedy: str = ""
    """What to do about it, if anything is known."""
    runs: int = 1
    """How often the test ran on the head."""
    failures: int = 1
    """In how many of these runs it failed."""
    cause: FlakeCause | None = None
    """What a flaky test depends on; null if that is unknown."""
    first_bad: FirstBad | None = None
    """Set if the history was searched."""


class Triage(VerificationPart):
    """Whose fault the failing tests of the head are."""

    format: str = "redstart-triage/1"
    redstart: str
    """The version of Redstart."""
    repo: str
    end: TriageEnd
    exit_code: int
    reason: str
    """The result in one sentence."""
    remedy: str = ""
    """What to do about it, if anything."""
    base: CodeVersion
    head: CodeVersion
    counts: OutcomeCounts = OutcomeCounts()
    """How the tests of the head ended."""
    tests: tuple[FailingTest, ...] = ()
    bisection: Bisection | None = None
    """Set if the history was searched."""
    notes: tuple[str, ...] = ()
    """What was not checked, one sentence each."""

    def list_tests(self, origin: FailureOrigin) -> list[FailingTest]:
        return [test for test in self.tests if test.origin is origin]
