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
    notes: tuple[str, ...] = ()
    """What was not checked, one sentence each."""

    def list_tests(self, origin: FailureOrigin) -> list[FailingTest]:
        return [test for test in self.tests if test.origin is origin]
