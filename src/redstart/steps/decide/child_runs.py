"""What is common to the runs whose work is done by child runs."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.run import Action, Decision, Ended, RunState
from redstart.ports.bundle import Ports


def waits_for_child_runs(run: RunState) -> bool:
    """Whether what it decided last was to wait for errands."""
    return run.now.decide is not None and run.now.decide.action is Action.spawn


def with_packages(decision: Decision, ended: Sequence[Ended]) -> Decision:
    """What errands installed for what they made is there for the next ones, and what was allowed to one to all."""
    approved = tuple(dict.fromkeys(name for one in ended for name in one.approved))
    made = [one.installed for one in ended if one.made is not None and one.installed is not None]
    return decision.model_copy(update={"approved": approved, "installed": made[-1] if made else None})


async def ended_child_runs(run: RunState, ports: Ports) -> Sequence[Ended]:
    """How the child runs ended that this one waits for."""
    return await ports.errands.ended() if waits_for_child_runs(run) else ()
