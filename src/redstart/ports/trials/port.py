"""The port to the results of evaluations."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class EvaluationTrial(NamedTuple):
    """One of the runs of an evaluation."""

    task: str
    seed: int
    run: int


class Trials(Protocol):
    """Evaluations by name: the plan of each, which run belongs to each trial, and its outcome.

    Plans and outcomes are opaque text. Each call is durable when it returns, and each write is atomic, however many
    processes write. Raises `StoreError` if that cannot be guaranteed, and for a trial of an evaluation that was never
    begun.
    """

    def begin(self, evaluation: str, plan: str) -> str:
        """Store the plan, unless there is an evaluation of that name; return the stored plan."""
        ...

    def plan(self, evaluation: str) -> str | None:
        """None if there is no evaluation of that name."""
        ...

    def list_evaluations(self) -> list[str]:
        """Return the names, sorted."""
        ...

    def assign(self, evaluation: str, trial: EvaluationTrial, run_id: str) -> None:
        """Store the run of the trial, until its outcome is final. If there are several, the last one counts."""
        ...

    def get_assigned_runs(self, evaluation: str) -> dict[EvaluationTrial, str]:
        """Return the run of each trial that has one."""
        ...

    def settle(self, evaluation: str, trial: EvaluationTrial, outcome: str, *, final: bool) -> None:
        """Store the outcome of the trial. The first final outcome stays; a later one replaces any other."""
        ...

    def list_outcomes(self, evaluation: str) -> list[str]:
        """Return the outcome of each trial that has one, ordered by seed, run and task."""
        ...
