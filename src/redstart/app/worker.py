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
from redstart.app.runs import load_stored_options
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, load_engine, open_app, open_database
from redstart.core.errors import ConfigError
from redstart.core.run import Mode, Status
from redstart.core.run_status import DriveStop, HaltReason
from redstart.core.shell import Environment
from redstart.engines.step_driver import drive
from redstart.engines.temporal.orders import DriveOrder
from redstart.flow.loop import StepAdvance
from redstart.ports.model.endpoints import ENDPOINTS

Pool = Literal["think", "act", "both"]


def refuse_keys(settings: Settings, environ: Mapping[str, str]) -> None:
    """Refuse to run untrusted code while holding a key. Raises `ConfigError` that names where a key is, not its
    value."""
    key_variables = {endpoint.variable for endpoint in ENDPOINTS.values()}
    key_variables |= {option.key_variable for option in settings.models.options.values()}
    key_locations = sorted(
        name for name in environ if environ[name] and (name in key_variables or name.upper().endswith("_API_KEY"))
    )
    addresses = {"models.base_url": settings.models.base_url}
    addresses |= {f"models.options.{name}.base_url": item.base_url for name, item in settings.models.options.items()}
    addresses |= {endpoint.url_variable: environ.get(endpoint.url_variable) for endpoint in ENDPOINTS.values()}
    key_locations += sorted(name for name, address in addresses.items() if address and "@" in address)
    if key_locations:
        raise ConfigError(
            f"a worker that runs tests must hold no key of a model, and {key_locations[0]} is set",
            remedy="start it without: a worker of the pool think asks the models",
        )


async def serve_fleet(
    settings: Settings, pool: Pool, at_once: int, stop: asyncio.Event, ready: Callable[[], None]
) -> None:
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

        def open_tenant_app(tenant: str) -> AbstractContextManager[AppContext]:
            return open_app(settings.model_copy(update={"tenant": tenant}), root_database=database)

        await serve(client, DriveActivity(partial(go, pool, open_tenant_app)), post, stop, ready)


async def go(
    pool: Pool,
    open_tenant_app: Callable[[str], AbstractContextManager[AppContext]],
    order: DriveOrder,
    get_halt_reason: Callable[[], HaltReason],
) -> StepAdvance:
    """Drive a run once with the privileges of this pool, on the store of the run's tenant."""
    with open_tenant_app(order.tenant) as app:
        await app.adapters.store.load(order.run_id)  # A run in a newer format fails here and stays unchanged.
        try:
            if pool != "think":
                await refuse_missing(app, order.run_id)
            run_app = app.with_run_options(await load_stored_options(app, order.run_id))
            adapters = replace(
                restrict_privileges(run_app, pool).adapters, get_halt_reason=get_halt_reason, supervised=True
            )
        except ConfigError as error:
            await app.adapters.store.mark(order.run_id, DriveStop(Status.failed, str(error)))
            raise
        claim = await adapters.store.claim(order.run_id)
        return await drive(adapters, claim, load_engine("langgraph"))


def restrict_privileges(app: AppContext, pool: Pool) -> AppContext:
    """Keep only the privileges of this pool: `think` cannot run anything, `act` cannot ask a model."""
    if pool != "think":
        app = app.with_sandbox()
    if pool != "act":
        app = app.with_model()
    return app if pool != "think" else replace(app, adapters=replace(app.adapters, sandbox=None, installer=None))


async def refuse_missing(app: AppContext, run_id: str) -> None:
    """Raise `ConfigError` if the interpreter of the run's tests is not on this machine."""
    state = await app.adapters.store.load(run_id)
    if state.spec.mode is Mode.audit:
        return
    environment = Environment.model_validate_json(app.adapters.blobs.get(state.spec.suite.environment))
    if not Path(environment.python).exists():
        raise ConfigError(
            f"the tests of run {run_id} need {environment.python}, which is not on this worker's machine",
            remedy="put the same environment there, or take the run back: redstart resume --engine langgraph",
        )
