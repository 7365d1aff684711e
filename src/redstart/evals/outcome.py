"""The outcomes of runs: one outcome, and all outcomes of an evaluation."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, TypeVar

from pydantic import Field, ValidationError

from redstart.core.errors import ConfigError, StoreError
from redstart.core.formats import EVALUATION, StorageFormat, StoredValue, read
from redstart.core.frozen import FrozenValue
from redstart.core.run import Level, Limits
from redstart.engines.port import DEFAULT
from redstart.ports.trials.port import EvaluationTrial, Trials

NOT_APPLIED = "none"
"""The key for edits that did not apply."""


class EndPoint(StrEnum):
    """Where a run ended: solved, or the obstacle that stopped it."""

    solved = "solved"
    false_green = "false green"
    """The run reported green, but the hidden tests fail."""
    not_reproduced = "not reproduced"
    not_localised = "not localised"
    """The files of the true fix were never shown to the model."""
    no_edit = "no usable edit"
    edit_rejected = "edit rejected"
    refused = "refused"
    """By policy, or because a person would have to decide."""
    still_red = "still red"
    newly_red = "newly red"
    budget = "budget"
    broken = "broken"
    """The machinery failed; this says nothing about the agent."""


class RunKey(FrozenValue):
    """Identifies a run of an evaluation."""

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
    """The result that the run itself reported."""
    solved: bool = False
    """Whether the hidden tests pass."""
    claimed: bool = False
    """Whether the run reported green."""
    place: EndPoint
    attempts: int = 0
    dishonest: int = 0
    """Attempts that touched tests, triggered a tripwire or were refused by policy; all of them were caught."""
    seconds: float = 0.0
    """Seconds of the run itself."""
    graded_in: float = 0.0
    """Seconds that the hidden tests took afterwards."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    rungs: dict[str, int] = {}
    """Edits by how they had to be adapted to apply; `none` for those that did not apply."""
    recall: float | None = None
    """The share of the true fix's files that the first context showed; None if the fix is not known."""
    lines_shown: bool | None = None
    """Whether some context contained every line that the true fix changes."""
    repeated: int = 0
    """Attempts with exactly the patch of an earlier attempt."""
    revisited: int = 0
    """Attempts that ended in the failing state of an earlier attempt."""
    files: tuple[str, ...] = ()
    patch: str = ""
    """The diff of the patch, if the run reported green. It is stored here so that it outlives the run."""
    covered: bool | None = Field(default=None, exclude_if=lambda covered: covered is None)
    """Whether the hidden tests pass with the patch of any candidate; None for a run without candidates."""
    trouble: str = ""
    """What broke, or why the run could not be graded."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


Row = TypeVar("Row", bound=FrozenValue)


class EvaluationPlan(StoredValue):
    """What an evaluation does. Options that change no result, such as the parallelism, are not part of it."""

    stored_as: ClassVar[StorageFormat] = EVALUATION
    format: str = EVALUATION.version
    name: str
    source: str
    tasks: str
    """A digest over all tasks: other tasks make another evaluation."""
    model: str
    engine: str = DEFAULT
    """All engines drive runs alike, so an evaluation can continue with another engine."""
    runs: int = 1
    seeds: tuple[int, ...] = (0,)
    limits: Limits = Limits()
    verify: Level = Level.standard
    looks: int | None = None
    candidates: int = Field(default=1, exclude_if=lambda count: count == 1)
    """How many child runs of each run try the fix; 1 if the run itself does."""
    escalate: bool = Field(default=False, exclude_if=lambda flag: not flag)
    choose: bool = Field(default=False, exclude_if=lambda flag: not flag)
    remembers: bool = False
    """Whether a run may recall what runs on other tasks saved, but never what runs on the same task saved."""

    def list_run_keys(self, tasks: list[str]) -> list[RunKey]:
        """List the keys of all runs, one round over all tasks after another."""
        rounds = [(seed, run) for seed in self.seeds for run in range(1, self.runs + 1)]
        return [RunKey(task=task, seed=seed, run=run) for seed, run in rounds for task in tasks]


class Results:
    """The rows of one evaluation in the store. Each call is durable when it returns. Raises `StoreError`."""

    def __init__(self, trials: Trials, name: str) -> None:
        """Open an existing evaluation. Raises `ConfigError` if there is none with that name."""
        stored_plan = find_plan(trials, name)
        if stored_plan is None:
            names = trials.list_evaluations()
            remedy = f"choose one of: {', '.join(names)}" if names else "start one with: redstart eval run"
            raise ConfigError(f"unknown evaluation {name}", remedy=remedy)
        self.plan = stored_plan
        self._trials = trials

    @classmethod
    def open(cls, trials: Trials, plan: EvaluationPlan) -> Results:
        """Begin the evaluation, or continue it. Raises `ConfigError` if it was started with another plan."""
        stored_plan = _read(EvaluationPlan, "plan", trials.begin(plan.name, plan.model_dump_json()))
        stored_plan = stored_plan.model_copy(update={"engine": plan.engine})
        if stored_plan != plan:
            old, new = stored_plan.model_dump(), plan.model_dump()
            differences = ", ".join(name for name in old if old[name] != new[name])
            raise ConfigError(
                f"evaluation {plan.name} was started with another plan ({differences})", remedy="use another --name"
            )
        return cls(trials, plan.name)

    def record_start(self, key: RunKey, run_id: str) -> None:
        """Record that this run was started for the key."""
        self._trials.assign(self.plan.name, _make_trial(key), run_id)

    def get_run_ids(self) -> dict[RunKey, str]:
        """Return the last run of each key."""
        return {
            RunKey(**trial._asdict()): run_id
            for trial, run_id in self._trials.get_assigned_runs(self.plan.name).items()
        }

    def add(self, outcome: RunOutcome) -> None:
        """Store the outcome of a run. A later outcome replaces a broken one."""
        final = outcome.place is not EndPoint.broken
        self._trials.settle(self.plan.name, _make_trial(outcome.key), outcome.model_dump_json(), final=final)

    def list_rows(self) -> list[RunOutcome]:
        """Return one outcome per finished key, ordered by seed, run and task."""
        return [_read(RunOutcome, "outcome", body) for body in self._trials.list_outcomes(self.plan.name)]


def find_plan(trials: Trials, name: str) -> EvaluationPlan | None:
    """Return the plan of the evaluation. None if there is none with that name. Raises `StoreError`."""
    body = trials.plan(name)
    return None if body is None else _read(EvaluationPlan, "plan", body)


def _make_trial(key: RunKey) -> EvaluationTrial:
    return EvaluationTrial(key.task, key.seed, key.run)


def _read(noun: type[Row], name: str, body: str) -> Row:
    try:
        return read(noun, body)
    except ValidationError as error:
        raise StoreError(
            f"an evaluation's {name} cannot be read: {error.error_count()} fields are not as expected",
            remedy="another version of Redstart wrote it; start an evaluation with another --name",
        ) from error
