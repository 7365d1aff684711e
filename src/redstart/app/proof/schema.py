"""What a proof says: the nouns of its published schema. Every docstring here is a description in it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import ConfigDict

from redstart.core.change import EditFit, EditKind
from redstart.core.noun import FrozenValue
from redstart.core.run import Level, Mode, Result

Seen = Literal["passed", "failed", "error", "skipped", "absent", "untested"]


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
    """The figures, or why it was not done, in our own words: nothing of the repo is in them."""


class OutcomeTally(ProofPart):
    """How the tests of one run of the suite ended."""

    passed: int
    failed: int
    errors: int
    skipped: int


class CaseLine(ProofPart):
    """One test that was to become green, or that ended otherwise than before."""

    id: str
    target: bool
    """Whether it was to become green."""
    before: Seen
    after: Seen
    """`absent` where it has no result, `untested` where the last patch was not tested."""


class Rerun(ProofPart):
    """One more run of the tests that were to become green."""

    patched: bool
    """Whether it ran with the patch."""
    varied: str
    """The one thing that was done otherwise than in the first run; empty for nothing."""
    green: int
    red: int


class MutantSummary(ProofPart):
    """Small changes to a new program, each tried on its own: how many of them made a test red."""

    sampled: int
    killed: int
    survivors: tuple[str, ...]
    """Those that no test noticed."""


class ChangedFile(ProofPart):
    """A file that the last patch changes; where it did not fit, one that it names."""

    path: str
    protected: str
    """Why it was not the patch's to change; empty where it was."""


class FindingSummary(ProofPart):
    """What static checks say of the files that the patch changes."""

    before: int | None
    """Findings before the change; null where the files were not all looked at then."""
    new: int | None
    """Findings that the patch brought, the harmless too; null where it was not checked."""
    blocking: int
    """Of the new ones those that a patch may not bring."""
    tripwires: int
    """Of those the ones that say that the code was made to fit the tests alone."""


class LineCounts(ProofPart):
    added: int
    removed: int


class ShrinkSummary(ProofPart):
    """How much of what the model proposed is left."""

    done: bool
    hunks_dropped: int
    proposed: LineCounts
    kept: LineCounts


class EditSummary(ProofPart):
    """Edits of one form that were put in place in one way."""

    form: EditKind
    fit: EditFit | None
    """How far they had to be bent; null where they did not fit."""
    count: int


class ReflectionText(ProofPart):
    """What a model says of a failed attempt: its words, not evidence."""

    root_cause: str
    what_failed: str
    try_next: str


class AttemptRecord(ProofPart):
    """One attempt."""

    number: int
    outcome: str
    edits: tuple[EditSummary, ...]
    reflection: ReflectionText | None = None
    """Why it failed, as a model says; null where none was asked."""


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
    """Calls whose price is not known: `usd` does not count them."""
    seconds: float


class JournalMark(ProofPart):
    """Names every call of the run, what it was asked and what it gave."""

    records: int
    sha256: str
    """Over the digests of all records in order, each as 64 hexadecimal digits, with nothing between them."""


class Proof(ProofPart):
    """The evidence of an ended run. `v` grows when a field changes its meaning; a new field does not change it."""

    v: Literal[1] = 1
    run: str
    parent: str
    """The run that this one was forked from: what it did until then is in that one's records."""
    repo: str
    mode: Mode
    runner: str
    level: Level
    """How much was run before a green counted."""
    result: Result
    verified: bool
    """Whether every check that this level asks for passed. False where a person accepted what did not."""
    by_person: bool
    """Whether a person accepted the patch although not every check passed."""
    sentence: str
    """The verdict, in our own words."""
    reason: str
    """Why the run ended."""
    checks: tuple[ProofCheck, ...]
    lacking: tuple[str, ...]
    """What speaks against the last patch, by name; empty where it is verified."""
    before: OutcomeTally
    after: OutcomeTally | None
    """Null where the last patch was not tested."""
    cases: tuple[CaseLine, ...]
    repeats_before: tuple[Rerun, ...]
    repeats_after: tuple[Rerun, ...]
    suite_runs: int
    """How often tests were run on the last patch."""
    flaky: tuple[str, ...]
    """Tests that were seen both red and green on the same code: never counted as fixed."""
    mutants: MutantSummary | None = None
    """Whether the tests of a new program would notice a broken one; null for every other run."""
    written: tuple[str, ...]
    """Test files that were written for this run, before the code."""
    sure: str = ""
    """How sure the model was that such a test is what an issue or an improvement is about, and why."""
    tree_before: str
    """The git tree that the patch is made on."""
    tree_after: str
    """The git tree that it gives; empty where there is none."""
    files: tuple[ChangedFile, ...]
    findings: FindingSummary
    shrunk: ShrinkSummary
    diff: str
    attempts: tuple[AttemptRecord, ...]
    models: tuple[ModelUse, ...]
    cost: Cost
    journal: JournalMark
