"""The models of a proof and of its published schema. Every docstring here is a description in the schema."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict

from redstart.core.change import EditFit, EditKind
from redstart.core.frozen import FrozenValue
from redstart.core.run import Level, Mode, Result
from redstart.core.set_aside import SetAsideSource

RecordedOutcome = Literal["passed", "failed", "error", "skipped", "absent", "untested"]


class ProofPart(FrozenValue):
    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)


class CheckName(StrEnum):
    targets = "targets"
    others = "others"
    repeats = "repeats"
    red_without = "red_without"
    able_to_fail = "able_to_fail"
    neutral = "neutral"
    untouched = "untouched"
    no_cheat = "no_cheat"
    findings = "findings"
    shrunk = "shrunk"


class CheckMark(StrEnum):
    passed = "passed"
    failed = "failed"
    not_done = "not_done"


class ProofCheck(ProofPart):
    """One thing that was checked."""

    name: CheckName
    mark: CheckMark
    said: str
    """The figures, or why it was not done, in our own words, without text from the repo."""


class OutcomeTally(ProofPart):
    """How the tests of one run of the suite ended."""

    passed: int
    failed: int
    errors: int
    skipped: int


class CaseLine(ProofPart):
    """One target test, or another test with a different result than before."""

    id: str
    target: bool
    """Whether it is a target."""
    before: RecordedOutcome
    after: RecordedOutcome
    """`absent` if it has no result, `untested` if the last patch was not tested."""


class SetAsideTests(ProofPart):
    """Failing tests that the run was not to make pass, because something other than the code makes them fail."""

    ids: tuple[str, ...]
    reason: str
    source: SetAsideSource
    """Who says so: `model` or `redstart`."""
    approved: bool
    """Whether a person agreed."""


class Rerun(ProofPart):
    """One rerun of the target tests."""

    patched: bool
    """Whether it ran with the patch."""
    varied: str
    """The one difference from the first run; empty for none."""
    green: int
    red: int


class MutantSummary(ProofPart):
    """Small changes to a new program, each tried separately: how many of them made a test fail."""

    sampled: int
    killed: int
    survivors: tuple[str, ...]
    """The changes that no test noticed."""


class ChangedFile(ProofPart):
    """A file that the last patch changes or, if the patch did not apply, names."""

    path: str
    protected: str
    """Why the patch may not change it; empty if it may."""


class FindingSummary(ProofPart):
    """Static check findings in the files that the patch changes."""

    before: int | None
    """Findings before the change; null if not all files were checked then."""
    new: int | None
    """Findings that the patch added, including harmless ones; null if it was not checked."""
    blocking: int
    """New findings that a patch may not add."""
    tripwires: int
    """Those of them that indicate code made to fit only the tests."""


class LineCounts(ProofPart):
    added: int
    removed: int


class ShrinkSummary(ProofPart):
    """How much of the proposed patch is left."""

    done: bool
    hunks_dropped: int
    proposed: LineCounts
    kept: LineCounts


class EditSummary(ProofPart):
    """Edits of one form that were applied in one way."""

    form: EditKind
    fit: EditFit | None
    """How far they had to be adjusted to fit; null if they did not fit."""
    count: int


class ReflectionText(ProofPart):
    """A model's explanation of a failed attempt: its words, not evidence."""

    root_cause: str
    what_failed: str
    try_next: str


class AttemptRecord(ProofPart):
    """One attempt."""

    number: int
    outcome: str
    edits: tuple[EditSummary, ...]
    reflection: ReflectionText | None = None
    """The model's explanation of the failure; null if no model was asked."""


class ModelUse(ProofPart):
    name: str
    calls: int
    input_tokens: int
    output_tokens: int


class Cost(ProofPart):
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float
    unpriced: int
    """Calls of unknown price, which `usd` does not count."""
    seconds: float


class JournalMark(ProofPart):
    """Identifies every call of the run with its request and its result."""

    records: int
    sha256: str
    """The hash of the digests of all records in order, each as 64 hexadecimal digits, without separators."""


class Proof(ProofPart):
    """The evidence of an ended run. `v` grows when a field changes its meaning; a new field does not change it."""

    v: Literal[1] = 1
    run: str
    parent: str
    """The run that this one was forked from; its records hold the earlier steps."""
    repo: str
    mode: Mode
    runner: str
    level: Level
    """How thoroughly the fix was verified."""
    result: Result
    verified: bool
    """Whether every check that this level requires passed. False if a person accepted a patch that did not pass all."""
    by_person: bool
    """Whether a person accepted the patch although not every check passed."""
    sentence: str
    """The verdict, in our own words."""
    reason: str
    """Why the run ended."""
    checks: tuple[ProofCheck, ...]
    lacking: tuple[str, ...]
    """The objections to the last patch, by name; empty if it is verified."""
    before: OutcomeTally
    after: OutcomeTally | None
    """Null if the last patch was not tested."""
    cases: tuple[CaseLine, ...]
    set_aside: tuple[SetAsideTests, ...] = ()
    """Failing tests that are not targets; the patch is not proven for them."""
    repeats_before: tuple[Rerun, ...]
    repeats_after: tuple[Rerun, ...]
    suite_runs: int
    """How many times tests ran on the last patch."""
    flaky: tuple[str, ...]
    """Tests that both failed and passed on the same code: never counted as fixed."""
    mutants: MutantSummary | None = None
    """Whether the tests of a new program would notice a broken one; null for all other runs."""
    written: tuple[str, ...]
    """Test files that were written for this run, before the code."""
    sure: str = ""
    """The model's confidence that such a test matches the issue or the improvement, and the reason."""
    tree_before: str
    """The git tree that the patch is made on."""
    tree_after: str
    """The git tree that it produces; empty if there is none."""
    files: tuple[ChangedFile, ...]
    findings: FindingSummary
    shrunk: ShrinkSummary
    diff: str
    attempts: tuple[AttemptRecord, ...]
    models: tuple[ModelUse, ...]
    cost: Cost
    journal: JournalMark
