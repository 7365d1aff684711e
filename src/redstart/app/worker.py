"""Serve a fleet as one of its workers, with only the privileges of a pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from redstart.app.fleet import require_fleet
from redstart.app.runs import stored_options
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, engine_called, open_database, open_house
from redstart.core.errors import ConfigError
from redstart.core.run import Mode, Status
from redstart.core.shell import Environment
from redstart.core.standing import DriveStop, HaltReason
from redstart.engines.drive import drive
from redstart.engines.temporal.orders import DriveOrder
from redstart.flow.loop import StepAdvance
from redstart.ports.model.endpoints import ENDPOINTS

Pool = Literal["think", "act", "both"]


def refuse_keys(settings: Settings, environ: Mapping[str, str]) -> None:
    """Refuse to run untrusted code while holding a key. Raises `ConfigError` that names where a key is, not its
    value."""
    named = {endpoint.variable for endpoint in ENDPOINTS.values()}
    named |= {option.key_variable for option in settings.models.options.values()}
    found = sorted(name for name in environ if environ[name] and (name in named or name.upper().endswith("_API_KEY")))
    addresses = {"models.base_url": settings.models.base_url}
    addresses |= {f"models.options.{name}.base_url": item.base_url for name, item in settings.models.options.items()}
    addresses |= {endpoint.url_variable: environ.get(endpoint.url_variable) for endpoint in ENDPOINTS.values()}
    found += sorted(name for name, address in addresses.items() if address and "@" in address)
    if found:
        raise ConfigError(
            f"a worker that runs tests must hold no key of a model, and {found[0]} is set",
            remedy="start it without: a worker of the pool think asks the models",
        )


async def work(settings: Settings, pool: Pool, at_once: int, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Serve the fleet until `stop` is set, then end each drive after its current step.

    Call `ready` when the worker accepts orders. Raises `ConfigError` if this worker is not allowed or unable to serve.
    """
    require_fleet(settings)
    from redstart.engines.temporal.client import connect  # noqa: PLC0415  (slow to load)
    from redstart.engines.temporal.driver import DriveActivity  # noqa: PLC0415
    from redstart.engines.temporal.worker import WorkerOptions, serve  # noqa: PLC0415

    fleet = settings.fleet
    client = await connect(fleet.address, fleet.namespace)
    pools = ("think", "act") if pool == "both" else (pool,)
    post = WorkerOptions(pools, at_once, fleet.deployment, fleet.build or version("redstart"))
    with open_database(settings) as database:

        def house_of(tenant: str) -> AbstractContextManager[AppContext]:
            return open_house(settings.model_copy(update={"tenant": tenant}), opened=database)

        await serve(client, DriveActivity(partial(go, pool, house_of)), post, stop, ready)


async def go(
    pool: Pool,
    house_of: Callable[[str], AbstractContextManager[AppContext]],
    order: DriveOrder,
    halting: Callable[[], HaltReason],
) -> StepAdvance:
    """Drive a run once with the privileges of this pool, on the store of the run's tenant."""
    with house_of(order.tenant) as house:
        await house.adapters.store.load(order.run_id)  # A run in a newer format fails here and stays unchanged.
        try:
            if pool != "think":
                await refuse_missing(house, order.run_id)
            chosen = house.with_options_of(await stored_options(house, order.run_id))
            adapters = replace(privileged(chosen, pool).adapters, halting=halting, supervised=True)
        except ConfigError as error:
            await house.adapters.store.mark(order.run_id, DriveStop(Status.failed, str(error)))
            raise
        claim = await adapters.store.claim(order.run_id)
        return await drive(adapters, claim, engine_called("langgraph"))


def privileged(house: AppContext, pool: Pool) -> AppContext:
    """Keep only the privileges of this pool: `think` cannot run anything, `act` cannot ask a model."""
    if pool != "think":
        house = house.with_sandbox()
    if pool != "act":
        house = house.with_model()
    return house if pool != "think" else replace(house, adapters=replace(house.adapters, sandbox=None, installer=None))


async def refuse_missing(house: AppContext, run_id: str) -> None:
    """Raise `ConfigError` if the interpreter of the run's tests is not on this machine."""
    state = await house.adapters.store.load(run_id)
    if state.spec.mode is Mode.audit:
        return
    environment = Environment.model_validate_json(house.adapters.blobs.get(state.spec.suite.environment))
    if not Path(environment.python).exists():
        raise ConfigError(
            f"the tests of run {run_id} need {environment.python}, which is not on this worker's machine",
            remedy="put the same environment there, or take the run back: redstart resume --engine langgraph",
        )
