"""What is common to the runs whose work is done by child runs."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.run import Action, ChildResult, Decision, RunState
from redstart.ports.bundle import Ports


def waits_for_child_runs(run: RunState) -> bool:
    """Whether what it decided last was to wait for errands."""
    return run.now.decide is not None and run.now.decide.action is Action.spawn


def with_packages(decision: Decision, ended: Sequence[ChildResult]) -> Decision:
    """What errands installed for what they made is there for the next ones, and what was allowed to one to all."""
    approved = tuple(dict.fromkeys(name for item in ended for name in item.approved))
    made = [item.installed for item in ended if item.made is not None and item.installed is not None]
    return decision.model_copy(update={"approved": approved, "installed": made[-1] if made else None})


async def ended_child_runs(run: RunState, ports: Ports) -> Sequence[ChildResult]:
    """How the child runs ended that this one waits for."""
    return await ports.errands.ended() if waits_for_child_runs(run) else ()
