"""Use cases of a fleet: submit a run to it, send it a signal, take the run back.

Temporal's library comes with the extra `fleet`; functions that need it report when it is missing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from redstart.app.settings import Settings
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.run import Mode, RunState, Status
from redstart.core.run_status import DriveStop
from redstart.core.shell import Environment
from redstart.engines.temporal.orders import SupervisorState, create_order

if TYPE_CHECKING:
    from redstart.engines.temporal.client import FleetClient

_REMEDY = "set its address, as host:port: export REDSTART_FLEET__ADDRESS=…, or start one here: redstart fleet up"


async def reach(settings: Settings) -> FleetClient:
    """Connect to the fleet of the settings. Raises `ConfigError` if none is set, `PortError` if it does not answer."""
    require_fleet(settings)
    from redstart.engines.temporal.client import FleetClient  # noqa: PLC0415  (slow to load)

    return await FleetClient.connect(settings.fleet.address, settings.fleet.namespace)


def require_fleet(settings: Settings) -> None:
    """Raise `ConfigError` with a remedy if no fleet is set, or if its library is not installed."""
    if not settings.fleet.address:
        raise ConfigError("no fleet is configured", remedy=_REMEDY)
    if find_spec("temporalio") is None:
        raise ConfigError("the package for fleets is not installed", remedy="pip install 'redstart[fleet]'")


async def submit(app: AppContext, state: RunState) -> None:
    """Let the fleet drive the run from its current step. If it already drives the run, tell it to continue.

    Raises `ConfigError` with the reasons if the run cannot leave this machine.
    """
    refuse_stuck(app, state)
    fleet = await reach(app.settings)
    await app.adapters.store.mark(state.run_id, DriveStop(Status.queued))
    await fleet.submit(state)


def refuse_stuck(app: AppContext, state: RunState) -> None:
    """Raise `ConfigError` if the run needs something that only this machine has, unless the fleet is on this machine
    too.
    """
    if app.settings.fleet.same_machine:
        return
    reasons = list_local_storage_reasons(app.settings)
    if state.spec.mode is not Mode.audit:
        environment = Environment.model_validate_json(app.adapters.blobs.get(state.suited.suite.environment))
        reasons += bound_to_machine(environment)
    if reasons:
        raise ConfigError(
            f"run {state.run_id} cannot move to another machine: {'; '.join(reasons)}",
            remedy=(
                f"drive it here: redstart resume {state.run_id} --engine langgraph; or, if the fleet's workers are "
                "on this machine, set fleet.same_machine = true"
            ),
        )


def list_local_storage_reasons(settings: Settings) -> list[str]:
    """List the reasons why other machines cannot read the run."""
    return [] if settings.store.url else ["runs are kept on this machine, since store.url is not set"]


def bound_to_machine(environment: Environment) -> list[str]:
    """List the parts of the environment that another machine does not have, each in a few words."""
    reasons: list[str] = []
    if environment.copies or environment.left_out:
        first = (*environment.copies, *environment.left_out)[0]
        reasons.append(f"its tests use files that git ignores, such as {first}")
    if environment.read_only:
        reasons.append(f"its interpreter or its packages are in {environment.read_only[0]}")
    return reasons


async def is_supervised(settings: Settings, state: RunState) -> bool:
    """Whether a fleet drives the run or waits to drive it."""
    if not settings.fleet.address:
        return False
    return await (await reach(settings)).is_supervised(create_order(state))


async def send_signal(settings: Settings, state: RunState, signal: str) -> bool:
    """Send `go_on`, `pause`, `cancel` or `let_go` to the run's supervisor. False if it has none."""
    if not settings.fleet.address:
        return False
    return await (await reach(settings)).send_signal(create_order(state), signal)


async def get_supervisor_state(settings: Settings, state: RunState) -> SupervisorState | None:
    """Load the state of the run's supervisor; None if it has none."""
    return await (await reach(settings)).get_supervisor_state(create_order(state)) if settings.fleet.address else None
