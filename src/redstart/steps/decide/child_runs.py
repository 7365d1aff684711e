"""Helpers for runs that work through child runs."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.run import Action, ChildResult, Decision, RunState
from redstart.ports.bundle import Ports


def waits_for_child_runs(run: RunState) -> bool:
    """Return whether the last decision was to wait for child runs."""
    return run.now.decide is not None and run.now.decide.action is Action.spawn


def with_packages(decision: Decision, ended: Sequence[ChildResult]) -> Decision:
    """Add the packages of the ended child runs to the decision.

    Later child runs use what earlier ones installed, and a package approved for one is approved for all.
    """
    approved = tuple(dict.fromkeys(name for item in ended for name in item.approved))
    made = [item.installed for item in ended if item.made is not None and item.installed is not None]
    return decision.model_copy(update={"approved": approved, "installed": made[-1] if made else None})


async def ended_child_runs(run: RunState, ports: Ports) -> Sequence[ChildResult]:
    """Return the results of the child runs that this run waits for; empty if it waits for none."""
    return await ports.errands.ended() if waits_for_child_runs(run) else ()
