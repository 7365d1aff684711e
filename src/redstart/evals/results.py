"""What an evaluation does and what it came to, as it is kept: one that was killed goes on where it was."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from pydantic import ValidationError

from redstart.core.errors import ConfigError, StoreError
from redstart.core.formats import EVALUATION, Format, StoredNoun, read
from redstart.core.noun import Noun
from redstart.core.run import Level, Limits
from redstart.engines.port import DEFAULT
from redstart.evals.outcome import Key, Outcome, Place
from redstart.ports.trials.port import Trial, Trials

Row = TypeVar("Row", bound=Noun)


class Plan(StoredNoun):
    """What an evaluation does. What is left open here (how many at once) changes no result."""

    stored_as: ClassVar[Format] = EVALUATION
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

    def keys(self, tasks: list[str]) -> list[Key]:
        """Every run of it, one round over all tasks after another."""
        rounds = [(seed, run) for seed in self.seeds for run in range(1, self.runs + 1)]
        return [Key(task=task, seed=seed, run=run) for seed, run in rounds for task in tasks]


class Results:
    """The rows of one evaluation, in the store: each call is durable when it returns. Raises `StoreError`."""

    def __init__(self, trials: Trials, name: str) -> None:
        """Of an evaluation that is there. Raises `ConfigError` where there is none of that name."""
        found = trials.plan(name)
        if found is None:
            known = trials.evaluations()
            listed = f"there are: {', '.join(known)}" if known else "begin one with: redstart eval run"
            raise ConfigError(f"there is no evaluation {name}", remedy=listed)
        self.plan = _read(Plan, found)
        self._trials = trials

    @classmethod
    def open(cls, trials: Trials, plan: Plan) -> Results:
        """Begins the evaluation, or goes on with it. Raises `ConfigError` where it was begun with another plan."""
        known = _read(Plan, trials.begin(plan.name, plan.model_dump_json()))
        known = known.model_copy(update={"engine": plan.engine})
        if known != plan:
            old, new = known.model_dump(), plan.model_dump()
            other = ", ".join(name for name in old if old[name] != new[name])
            raise ConfigError(
                f"evaluation {plan.name} was begun with another plan ({other})", remedy="give this one another --name"
            )
        return cls(trials, plan.name)

    def begin(self, key: Key, run_id: str) -> None:
        """Keeps that this run was begun for the key."""
        self._trials.assign(self.plan.name, _trial(key), run_id)

    def begun(self) -> dict[Key, str]:
        """The run of each key; where there are several, the last one."""
        return {Key(**which._asdict()): run_id for which, run_id in self._trials.assigned(self.plan.name).items()}

    def add(self, outcome: Outcome) -> None:
        """Keeps what a run came to; what is broken gives way to what comes later."""
        final = outcome.place is not Place.broken
        self._trials.settle(self.plan.name, _trial(outcome.key), outcome.model_dump_json(), final=final)

    def rows(self) -> list[Outcome]:
        """One for each key that has one, in the order in which they are done: by seed, run and task."""
        return [_read(Outcome, body) for body in self._trials.outcomes(self.plan.name)]


def _trial(key: Key) -> Trial:
    return Trial(key.task, key.seed, key.run)


def _read(noun: type[Row], body: str) -> Row:
    try:
        return read(noun, body)
    except ValidationError as error:
        raise StoreError(
            f"an evaluation's {noun.__name__.lower()} cannot be read: {error.error_count()} fields are not as expected",
            remedy="It was kept by another version of redstart; begin an evaluation with another --name.",
        ) from error
