"""The parts of a run's spec that are specific to one mode, and the flat form in which earlier versions stored them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from redstart.core.change import Snapshot
from redstart.core.finding import Scan
from redstart.core.frozen import FrozenValue
from redstart.core.run_preferences import Metric, ProgramKind, QuestionOptions
from redstart.core.set_aside import SetAsidePolicy

GOAL_LIMIT = 4000
MOST_CRITERIA = 40
"""Acceptance criteria of one part of a program."""
MOST_CANDIDATES = 8


class Mode(StrEnum):
    fix = "fix"
    create = "create"
    improve = "improve"
    audit = "audit"


class _Task(FrozenValue):
    """What the steps shared by all modes may ask of the mode-specific part."""

    makes_program: ClassVar[bool] = False
    """Whether the run writes a new program, which has no baseline and grows with each attempt."""
    chooses_goal: ClassVar[bool] = False
    """Whether the plan chooses what to do. If it names nothing, the run cannot continue."""

    @property
    def writes_first_tests(self) -> bool:
        """Whether a model writes the tests that the run starts from, so it can be asked for other tests."""
        return False


class FastCandidates(FrozenValue):
    """The first candidates, whose edits the fast model writes. The others begin only after these have ended."""

    count: int = Field(ge=1, lt=MOST_CANDIDATES)
    attempts: int
    """Attempts of each: after more, the strong model would be asked."""
    asks: QuestionOptions
    looks: int = 0


class CandidatePlan(FrozenValue):
    """How many child runs try the same fix, and which patch the run takes."""

    count: int = Field(ge=2, le=MOST_CANDIDATES)
    fast: FastCandidates | None = None
    """None if all candidates ask the strong model and may run at the same time."""
    choose: bool = False
    """Whether all candidates run to their ends and the smallest patch is taken. Otherwise, the first candidate that is
    verified ends the others."""


class BranchStart(FrozenValue):
    """Where the branch that is checked out left the default branch."""

    name: str
    """The name of the default branch."""
    snapshot: Snapshot


class FixTask(_Task):
    mode: Literal[Mode.fix] = Mode.fix
    targets: tuple[str, ...] = ()
    """Test IDs, files, folders or classes to make pass; empty for every test that fails at the baseline."""
    keyword: str = Field(default="", max_length=GOAL_LIMIT)
    """Limits the targets to the tests that this expression (pytest's `-k`) selects."""
    issue: bool = False
    """Whether the goal describes a bug for which a failing test must still be written."""
    set_aside: SetAsidePolicy = Field(
        default=SetAsidePolicy.never, exclude_if=lambda policy: policy is SetAsidePolicy.never
    )
    """Whether failing tests may be set aside, and who decides."""
    branch_start: BranchStart | None = Field(default=None, exclude_if=lambda start: start is None)
    """If a test fails that passes there, or is new, no test that fails there too is a target. None to compare with
    nothing."""
    candidates: CandidatePlan | None = Field(default=None, exclude_if=lambda plan: plan is None)
    """The child runs that try the fix; None if the run itself does."""


class CreateTask(_Task):
    makes_program: ClassVar[bool] = True

    mode: Literal[Mode.create] = Mode.create
    kind: ProgramKind | None = None
    offers: tuple[str, ...] = Field(default=(), max_length=20)
    """Packages that the tests may import besides the standard library and their runner."""
    own_tests: tuple[str, ...] = Field(default=(), max_length=50)
    """Paths of the user's tests. They are in the base, and the model is asked for no others."""
    test_cpu: int = Field(default=0, ge=0)
    """Seconds of processor time that each test may use, if the runner is pytest; 0 for no limit."""
    whole: str = Field(default="", max_length=GOAL_LIMIT)
    """The goal of the program that a subtask is part of; empty for a run that has the whole goal."""
    criteria: tuple[str, ...] = Field(default=(), max_length=MOST_CRITERIA)
    """The acceptance criteria of a subtask."""

    @property
    def writes_first_tests(self) -> bool:
        return not self.own_tests


class ImproveTask(_Task):
    chooses_goal: ClassVar[bool] = True

    mode: Literal[Mode.improve] = Mode.improve
    cycles: int = Field(default=0, ge=0)
    """How many improvements are tried; 0 for no limit."""
    pause: float = Field(default=0.0, ge=0)
    """Seconds between two improvements."""
    metric: Metric | None = None
    """What an improvement must not make worse."""
    before: tuple[str, ...] = Field(default=(), max_length=8)
    """What the previous improvements did, with their outcomes, one line each, newest last."""
    proven: bool = False
    """Whether a previous improvement has proven that the tests pass on this base."""


class AuditTask(_Task):
    mode: Literal[Mode.audit] = Mode.audit
    scan: Scan | None = None
    """What the audit covers; None for audits of earlier versions."""


Task = FixTask | CreateTask | ImproveTask | AuditTask
TASKS: dict[Mode, type[Task]] = {
    Mode.fix: FixTask,
    Mode.create: CreateTask,
    Mode.improve: ImproveTask,
    Mode.audit: AuditTask,
}
_FLAT = {name for shape in TASKS.values() for name in shape.model_fields}


def upgrade_flat_spec(document: Mapping[str, object]) -> dict[str, object]:
    """Convert the flat form of a spec, with the fields of every mode, to the form with its mode's fields in `task`.

    In the flat form, fields of other modes mean nothing and are dropped. A document without `mode` stays as it is.
    """
    if "mode" not in document:
        return dict(document)
    mode_fields = TASKS[Mode(str(document["mode"]))].model_fields
    task = {name: value for name, value in document.items() if name in mode_fields}
    return {"task": task, **{name: value for name, value in document.items() if name not in _FLAT}}


def with_flat_names(document: Mapping[str, object], task: Task) -> dict[str, object]:
    """Return a spec for display, with the fields of every mode also under their names in the flat form."""
    flat_fields = {name: value for shape in TASKS.values() for name, value in shape().model_dump(mode="json").items()}
    return {**document, **flat_fields, **task.model_dump(mode="json")}
