"""Helpers for runs that work through child runs."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.run import Action, ChildResult, Decision, RunState
from redstart.ports.bundle import Ports


def is_waiting_for_child_runs(run: RunState) -> bool:
    """Return whether the last decision was to wait for child runs."""
    return run.now.decide is not None and run.now.decide.action is Action.spawn


def with_packages(decision: Decision, results: Sequence[ChildResult]) -> Decision:
    """Add the packages of the ended child runs to the decision.

    Later child runs use what earlier ones installed, and a package approved for one is approved for all.
    """
    approved = tuple(dict.fromkeys(name for item in results for name in item.approved))
    installed = [item.installed for item in results if item.made is not None and item.installed is not None]
    return decision.model_copy(update={"approved": approved, "installed": installed[-1] if installed else None})


async def get_child_results(run: RunState, ports: Ports) -> Sequence[ChildResult]:
    """Return the results of the child runs that this run waits for; empty if it waits for none."""
    return await ports.child_runs.load_results() if is_waiting_for_child_runs(run) else ()
