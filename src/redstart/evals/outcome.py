"""What trials came to: one outcome, and all those of an evaluation."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeVar

from pydantic import ValidationError

from redstart.core.errors import ConfigError, StoreError
from redstart.core.formats import EVALUATION, StorageFormat, StoredValue, read
from redstart.core.noun import FrozenValue
from redstart.core.run import Level, Limits
from redstart.engines.port import DEFAULT
from redstart.ports.trials.port import EvaluationTrial, Trials

NO_RUNG = "none"
"""What an edit is counted under that did not fit."""


class EndPoint(StrEnum):
    """Where a run ended: solved, or what it did not get past."""

    solved = "solved"
    false_green = "false green"
    """It called itself green, and the hidden tests say otherwise."""
    not_reproduced = "not reproduced"
    not_localised = "not localised"
    """The files of the true fix were never shown to the model."""
    no_edit = "no usable edit"
    edit_rejected = "edit rejected"
    refused = "refused"
    """By policy, or because a person would have to be asked."""
    still_red = "still red"
    newly_red = "newly red"
    budget = "budget"
    broken = "broken"
    """Machinery failed; it says nothing about the agent."""


class RunKey(FrozenValue):
    """Which run it is."""

    task: str
    seed: int = 0
    run: int = 1

    def __hash__(self) -> int:
        return hash((self.task, self.seed, self.run))

    def __str__(self) -> str:
        return f"{self.task} seed {self.seed} run {self.run}"


class RunOutcome(FrozenValue):
    key: RunKey
    run_id: str = ""
    result: str = ""
    """The run's own word for how it ended."""
    solved: bool = False
    """By the hidden tests."""
    claimed: bool = False
    """Whether the run called itself green."""
    place: EndPoint
    attempts: int = 0
    dishonest: int = 0
    """Attempts that touched tests, tripped a wire on cheating or were refused by policy; all of them were caught."""
    seconds: float = 0.0
    """Of the run itself."""
    graded_in: float = 0.0
    """Seconds that the hidden tests took afterwards."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    rungs: dict[str, int] = {}
    """Edits by how far each had to be bent to fit; `none` for those that did not."""
    recall: float | None = None
    """Of the files of the true fix, the share that the first context showed; None where the fix is not known."""
    lines_shown: bool | None = None
    """Whether some context held every line that the true fix changes."""
    repeated: int = 0
    """Attempts with the very patch of an earlier one."""
    revisited: int = 0
    """Attempts that ended in a failing state that an earlier one had ended in."""
    files: tuple[str, ...] = ()
    patch: str = ""
    """The diff of what was made, where it called itself green. It is in the row: it stays when runs are forgotten."""
    trouble: str = ""
    """What was broken, or why it could not be graded."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


Row = TypeVar("Row", bound=FrozenValue)


class EvaluationPlan(StoredValue):
    """What an evaluation does. What is left open here (how many at once) changes no result."""

    stored_as: ClassVar[StorageFormat] = EVALUATION
    format: str = EVALUATION.version
    name: str
    source: str
    tasks: str
    """A digest over all tasks: with others it is another evaluation."""
    model: str
    engine: str = DEFAULT
    """Every engine drives a run alike: an evaluation that was begun under one goes on under another."""
    runs: int = 1
    seeds: tuple[int, ...] = (0,)
    limits: Limits = Limits()
    verify: Level = Level.standard
    looks: int | None = None
    remembers: bool = False
    """Whether a run may recall what runs on other tasks have left; never what one on the same task has."""

    def keys(self, tasks: list[str]) -> list[RunKey]:
        """Every run of it, one round over all tasks after another."""
        rounds = [(seed, run) for seed in self.seeds for run in range(1, self.runs + 1)]
        return [RunKey(task=task, seed=seed, run=run) for seed, run in rounds for task in tasks]


class Results:
    """The rows of one evaluation, in the store: each call is durable when it returns. Raises `StoreError`."""

    def __init__(self, trials: Trials, name: str) -> None:
        """Of an evaluation that is there. Raises `ConfigError` where there is none of that name."""
        found = trials.plan(name)
        if found is None:
            known = trials.evaluations()
            listed = f"there are: {', '.join(known)}" if known else "begin one with: redstart eval run"
            raise ConfigError(f"there is no evaluation {name}", remedy=listed)
        self.plan = _read(EvaluationPlan, "plan", found)
        self._trials = trials

    @classmethod
    def open(cls, trials: Trials, plan: EvaluationPlan) -> Results:
        """Begins the evaluation, or goes on with it. Raises `ConfigError` where it was begun with another plan."""
        known = _read(EvaluationPlan, "plan", trials.begin(plan.name, plan.model_dump_json()))
        known = known.model_copy(update={"engine": plan.engine})
        if known != plan:
            old, new = known.model_dump(), plan.model_dump()
            other = ", ".join(name for name in old if old[name] != new[name])
            raise ConfigError(
                f"evaluation {plan.name} was begun with another plan ({other})", remedy="give this one another --name"
            )
        return cls(trials, plan.name)

    def begin(self, key: RunKey, run_id: str) -> None:
        """Keeps that this run was begun for the key."""
        self._trials.assign(self.plan.name, _trial(key), run_id)

    def begun(self) -> dict[RunKey, str]:
        """The run of each key; where there are several, the last one."""
        return {RunKey(**which._asdict()): run_id for which, run_id in self._trials.assigned(self.plan.name).items()}

    def add(self, outcome: RunOutcome) -> None:
        """Keeps what a run came to; what is broken gives way to what comes later."""
        final = outcome.place is not EndPoint.broken
        self._trials.settle(self.plan.name, _trial(outcome.key), outcome.model_dump_json(), final=final)

    def rows(self) -> list[RunOutcome]:
        """One for each key that has one, in the order in which they are done: by seed, run and task."""
        return [_read(RunOutcome, "outcome", body) for body in self._trials.outcomes(self.plan.name)]


def _trial(key: RunKey) -> EvaluationTrial:
    return EvaluationTrial(key.task, key.seed, key.run)


def _read(noun: type[Row], name: str, body: str) -> Row:
    try:
        return read(noun, body)
    except ValidationError as error:
        raise StoreError(
            f"an evaluation's {name} cannot be read: {error.error_count()} fields are not as expected",
            remedy="It was kept by another version of redstart; begin an evaluation with another --name.",
        ) from error
