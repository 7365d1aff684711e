"""The port to what evaluations came to."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class EvaluationTrial(NamedTuple):
    """One of the runs that an evaluation asks for."""

    task: str
    seed: int
    run: int


class Trials(Protocol):
    """Evaluations by name: the plan of each, which run each of its trials has, and what that came to.

    Plans and outcomes are text that nobody reads here. Each call is durable when it returns, and what it writes is
    there as a whole or not at all, however many processes write. Raises `StoreError` where that cannot be had, and for
    a trial of an evaluation that was never begun.
    """

    def begin(self, evaluation: str, plan: str) -> str:
        """Keeps the plan, unless there is an evaluation of that name; gives the plan that it has."""
        ...

    def plan(self, evaluation: str) -> str | None:
        """None where there is no evaluation of that name."""
        ...

    def evaluations(self) -> list[str]:
        """The name of each, sorted."""
        ...

    def assign(self, evaluation: str, trial: EvaluationTrial, run_id: str) -> None:
        """Keeps which run the trial has, until its outcome is final; of several the last one counts."""
        ...

    def assigned(self, evaluation: str) -> dict[EvaluationTrial, str]:
        """The run of each trial that has one."""
        ...

    def settle(self, evaluation: str, trial: EvaluationTrial, outcome: str, *, final: bool) -> None:
        """Keeps what the trial came to. The first outcome that is final stays; any other gives way to a later one."""
        ...

    def outcomes(self, evaluation: str) -> list[str]:
        """One for each trial that has one: by seed, then run, then task."""
        ...
