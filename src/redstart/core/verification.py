"""What the test runs show of a change that anybody made. Every docstring here is a description in the schema."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import ConfigDict

from redstart.core.frozen import FrozenValue
from redstart.core.report import CheckEvidence, Mutants, OutcomeCounts
from redstart.core.run import Level


class VerificationPart(FrozenValue):
    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)


class VerificationEnd(StrEnum):
    """How a verification ended."""

    verified = "verified"
    """Tests that fail without the change pass with it, and nothing got worse."""
    unproven = "unproven"
    """Nothing got worse, and no test proves the change."""
    worse = "worse"
    weakened = "weakened"
    """Tests demand less than before, and no person has accepted that."""
    tampered = "tampered"
    """The change hides failures."""
    environment = "environment"
    no_tests = "no_tests"


class ProofRequirement(StrEnum):
    """What a change must show, so that the exit code is 0."""

    no_worse = "no-worse"
    proof = "proof"


class FileRole(StrEnum):
    """What a changed file is for."""

    source = "source"
    tests = "tests"
    configuration = "configuration"
    dependencies = "dependencies"
    generated = "generated"
    docs = "docs"
    other = "other"
    """Settings of servers, editors and agents, which the tests do not read."""


class ChangeType(StrEnum):
    added = "added"
    edited = "edited"
    removed = "removed"


class SortedFile(VerificationPart):
    """A file that the change touches."""

    path: str
    role: FileRole
    change: ChangeType


class ClaimKind(StrEnum):
    """What the runs show of one test."""

    fixed = "fixed"
    """A test of the old code that failed there and passes with the change."""
    proven = "proven"
    """A new or edited test that fails without the change and passes with it."""
    absent_before = "absent_before"
    """A new test that fails without the change only because a name that the change adds does not exist there."""
    green_without = "green_without"
    """A new or edited test that also passes without the change: it proves nothing about it."""
    broken = "broken"
    """The test passes without the change and fails with it, or it is new and fails."""
    hidden = "hidden"
    """The test fails on the new code with the old test configuration, and the new configuration hides that."""
    weakened = "weakened"
    """The test's old form fails on the new code, or its new form asserts less."""
    removed = "removed"
    """The test is gone, and no other test replaces it."""
    skipped = "skipped"
    """The test ran and does not run any more: it is skipped or deselected."""
    replaced = "replaced"
    """The test is gone, and other tests contain it now, or what it tests is gone too."""
    outdated = "outdated"
    """The test's old form fails on the new code only because a name or signature that it uses is gone."""
    edited = "edited"
    """The test changed, and its old form passes on the new code too."""
    red_before = "red_before"
    """The test fails without the change and with it."""
    flaky = "flaky"
    """The test passes in one run and fails in another on the same code."""
    environment = "environment"
    """The test fails because of something that this machine lacks."""


PROVING = frozenset((ClaimKind.fixed, ClaimKind.proven))
ASKING = frozenset((ClaimKind.weakened, ClaimKind.removed, ClaimKind.skipped))
"""What only a person may accept."""


class Claim(VerificationPart):
    """What the runs show of one test, if the change concerns it."""

    test: str
    kind: ClaimKind
    note: str = ""
    """Why, in a few words; may quote the test's failure."""
    controlled: bool = False
    """Whether altered copies of the new test fail on the new code, as they must."""
    fails_without: bool = False
    """Whether a test that demands less also fails without the change: it proves the change once it is accepted."""
    accepted: str = ""
    """The person who accepted a test that demands less; empty if nobody did."""

    @property
    def is_proof(self) -> bool:
        """Whether the test proves the change: also one of what did not exist before, if it is known to be able to
        fail, and an accepted one that demands less, if it fails without the change."""
        if self.kind is ClaimKind.absent_before:
            return self.controlled
        return self.kind in PROVING or (self.fails_without and bool(self.accepted))


class MatrixRun(VerificationPart):
    """One cell of the matrix: tests of one side on the code of one side."""

    new_tests: bool
    new_code: bool
    counts: OutcomeCounts
    """How the tests ended."""
    seconds: float
    partial: bool = False
    """Whether only the tests of changed test files ran; the other results are those of another cell."""
    kept: bool = False
    """Whether the results are those of an earlier verification, with the same files in the same environment."""
    reported: str = ""
    """The JUnit file of an earlier CI job that results are from which were not rerun here; empty if all tests ran."""
    not_run: str = ""
    """Why the tests did not run: the environment of this side's code cannot be made. Empty if they ran."""
    problem: str = ""
    """Why there are no results per test; empty if there are."""


class UntestedLines(VerificationPart):
    """Changed lines of a file that none of the tests ran which import the file."""

    path: str
    lines: tuple[int, ...]


class CodeVersion(VerificationPart):
    """One side of the change."""

    name: str
    """As the user names it: a ref, `working tree`, `staged changes` or the name of a patch file."""
    commit: str = ""
    """The commit, if it is exactly one."""
    tree: str
    """The ID of the files' git tree."""


class Verification(VerificationPart):
    """The verdict on a change, with the evidence for it."""

    format: str = "redstart-verification/1"
    redstart: str
    """The version of Redstart."""
    repo: str
    end: VerificationEnd
    exit_code: int
    reason: str
    """The verdict in one sentence."""
    remedy: str = ""
    """What to do about it, if anything."""
    require: ProofRequirement
    level: Level
    base: CodeVersion
    head: CodeVersion
    files: tuple[SortedFile, ...] = ()
    matrix: tuple[MatrixRun, ...] = ()
    claims: tuple[Claim, ...] = ()
    evidence: tuple[CheckEvidence, ...] = ()
    """The checks of the tests that prove the change."""
    untested: tuple[UntestedLines, ...] = ()
    """What no test runs; empty also if that was not checked."""
    mutants: Mutants | None = None
    """Whether tests notice small changes of the changed lines; None if that was not checked."""
    notes: tuple[str, ...] = ()
    """What a reviewer should know besides, and what was not checked, one sentence each."""

    def list_claims(self, kinds: Iterable[ClaimKind]) -> list[Claim]:
        """List the claims of these kinds, kind by kind."""
        return [claim for kind in kinds for claim in self.claims if claim.kind is kind]
