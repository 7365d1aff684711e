"""What one mode alone has of a run's spec, and the flat form in which earlier versions stored it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from redstart.core.finding import Scan
from redstart.core.noun import FrozenValue
from redstart.core.wishes import Metric, ProgramKind

GOAL_LIMIT = 4000
MOST_CRITERIA = 40
"""Acceptance criteria of one part of a program."""


class Mode(StrEnum):
    fix = "fix"
    create = "create"
    improve = "improve"
    audit = "audit"


class _Task(FrozenValue):
    """What the steps that all modes share may ask of the part of one mode."""

    makes_program: ClassVar[bool] = False
    """Whether the program is still to be written: it has no baseline, and grows from attempt to attempt."""
    chooses_goal: ClassVar[bool] = False
    """Whether the plan chooses what to do, so that nothing can be done where it names nothing."""

    @property
    def writes_first_tests(self) -> bool:
        """Whether a model writes the tests that the run starts from, so that it can be asked for other ones."""
        return False


class FixTask(_Task):
    mode: Literal[Mode.fix] = Mode.fix
    targets: tuple[str, ...] = ()
    """Test ids, files, folders or classes to make green; empty for every test that is red at the baseline."""
    keyword: str = Field(default="", max_length=GOAL_LIMIT)
    """Of those, only the tests that this expression (pytest's `-k`) chooses."""
    issue: bool = False
    """Whether the goal tells of something that is wrong, and the red test of it is still to be written."""


class CreateTask(_Task):
    makes_program: ClassVar[bool] = True

    mode: Literal[Mode.create] = Mode.create
    kind: ProgramKind | None = None
    offers: tuple[str, ...] = Field(default=(), max_length=20)
    """Packages that the tests may import besides the standard library and their runner."""
    own_tests: tuple[str, ...] = Field(default=(), max_length=50)
    """Paths of tests that the user gave. They are in the base, and no others are asked for."""
    test_cpu: int = Field(default=0, ge=0)
    """Seconds of processor time that each test may use, where the runner is pytest; 0 for no limit."""
    whole: str = Field(default="", max_length=GOAL_LIMIT)
    """The goal that a subtask is a part of; empty for a run that has the goal itself."""
    criteria: tuple[str, ...] = Field(default=(), max_length=MOST_CRITERIA)
    """By what a subtask is told to be done."""

    @property
    def writes_first_tests(self) -> bool:
        return not self.own_tests


class ImproveTask(_Task):
    chooses_goal: ClassVar[bool] = True

    mode: Literal[Mode.improve] = Mode.improve
    cycles: int = Field(default=0, ge=0)
    """How many improvements are tried; 0 for no end."""
    pause: float = Field(default=0.0, ge=0)
    """Seconds between two of them."""
    metric: Metric | None = None
    """What an improvement must not make worse."""
    before: tuple[str, ...] = Field(default=(), max_length=8)
    """What the improvements before this one did and came to, a line each, the newest last."""
    proven: bool = False
    """Whether an improvement before this one has proven its base green."""


class AuditTask(_Task):
    mode: Literal[Mode.audit] = Mode.audit
    scan: Scan | None = None
    """What it looks at; None for audits of earlier versions."""


Task = FixTask | CreateTask | ImproveTask | AuditTask
TASKS: dict[Mode, type[Task]] = {
    Mode.fix: FixTask,
    Mode.create: CreateTask,
    Mode.improve: ImproveTask,
    Mode.audit: AuditTask,
}
_FLAT = {name for shape in TASKS.values() for name in shape.model_fields}


def upgrade_flat_spec(document: Mapping[str, object]) -> dict[str, object]:
    """A spec with the fields of its mode in `task`, from the flat form that named the fields of every mode.

    In that form a field of another mode means nothing, and is left out. A document without `mode` stays as it is.
    """
    if "mode" not in document:
        return dict(document)
    own = TASKS[Mode(str(document["mode"]))].model_fields
    task = {name: value for name, value in document.items() if name in own}
    return {"task": task, **{name: value for name, value in document.items() if name not in _FLAT}}


def with_flat_names(document: Mapping[str, object], task: Task) -> dict[str, object]:
    """A spec as people read it: with the fields of every mode also under the names that they had beside each other."""
    plain = {name: value for shape in TASKS.values() for name, value in shape().model_dump(mode="json").items()}
    return {**document, **plain, **task.model_dump(mode="json")}
