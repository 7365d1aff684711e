"""`redstart fleet` and `redstart worker`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli.output import echo

if TYPE_CHECKING:
    from redstart.engines.temporal.client import FleetClient


app = typer.Typer(
    help="Start a trial fleet on this machine, or manage a fleet.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("up", short_help="Start a trial fleet on this machine.")
def up(
    workers: Annotated[int, typer.Option("--workers", min=1, help="Number of workers.")] = 2,
    folder: Annotated[Path | None, typer.Option("--folder", help="Directory for the data of the fleet.")] = None,
) -> None:
    """Start a trial fleet on this machine: a server, workers, and Postgres if it is installed. Ctrl-C stops it."""
    from redstart.app import settings as configuration
    from redstart.app.trial import keep_up, start_trial

    settings = configuration.load()
    configuration.require_model(settings)
    with start_trial(settings, folder or settings.home / "fleet", workers) as running:
        echo(f"The fleet runs at {running.address} and stores runs in {running.keeps}.")
        echo("Use it from another terminal:")
        echo(f"  . {running.variables}")
        echo("  redstart fix --detach        # start a run on the fleet")
        echo("  redstart runs watch          # follow the run")
        echo("  redstart fleet status        # list workers and active runs")
        echo("Ctrl-C stops the fleet after the current steps; finished steps are kept.")
        with suppress(KeyboardInterrupt):
            keep_up(running, echo)
        echo("stopping")


@app.command("status")
def status(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of runs to list.")] = 20,
) -> None:
    """List the workers and the active runs."""
    from redstart.app import settings as configuration
    from redstart.core.frozen import format_count

    settings = configuration.load()

    async def print_workers(fleet: FleetClient) -> None:
        counts = await fleet.count_workers()
        echo(
            f"{settings.fleet.address}: "
            + ", ".join(f"{format_count(count, 'worker')} in pool {pool}" for pool, count in counts.items())
        )
        for pool, count in counts.items():
            if not count:
                echo(f"no worker in pool {pool}; start one: redstart worker --pool {pool}")
        for item in await fleet.list_supervisors(settings.tenant, limit):
            echo(f"{item.run_id}  {item.mode:<7} {item.outcome or item.status:<14} {item.repo}")

    _with_fleet(print_workers)


@app.command("register", short_help="Register search attributes with the server.")
def register() -> None:
    """Register the search attributes of runs with the fleet's server, once per namespace."""

    async def make_known(fleet: FleetClient) -> None:
        new = await fleet.register()
        echo(f"registered: {', '.join(new)}" if new else "all attributes are already registered")

    _with_fleet(make_known)


@app.command("promote", short_help="Let workers of a build continue all runs.")
def promote(
    build: Annotated[str | None, typer.Argument(help="The build (default: the setting fleet.build).")] = None,
) -> None:
    """Let workers of this build continue all runs, including those that an earlier build started."""
    from importlib.metadata import version

    from redstart.app import settings as configuration
    from redstart.core.errors import ConfigError

    fleet = configuration.load().fleet
    if not fleet.deployment:
        raise ConfigError(
            "workers are not versioned: the setting fleet.deployment is empty", remedy="set fleet.deployment to a name"
        )
    chosen_build = build or fleet.build or version("redstart")

    async def make_current(client: FleetClient) -> None:
        await client.promote(fleet.deployment, chosen_build)
        echo(f"{fleet.deployment} {chosen_build} now continues all runs")

    _with_fleet(make_current)


def _with_fleet(do: Callable[[FleetClient], Awaitable[None]]) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.fleet import reach

    async def go() -> None:
        await do(await reach(configuration.load()))

    asyncio.run(go())


class PoolName(StrEnum):
    think = "think"
    act = "act"
    both = "both"


def worker(
    pool: Annotated[
        PoolName,
        typer.Option("--pool", help="Work to do: think (ask models), act (run tests, without API keys), or both."),
    ] = PoolName.both,
    at_once: Annotated[
        int | None, typer.Option("--at-once", min=1, help="Runs in parallel per pool (default 4).")
    ] = None,
) -> None:
    """Work on the runs of a fleet until stopped. Ctrl-C or SIGTERM stops after the current steps; nothing is lost."""
    import asyncio
    import os
    import signal

    from redstart.app import settings as configuration
    from redstart.app.worker import refuse_keys, serve_fleet

    settings = configuration.load()
    if pool is PoolName.act:
        refuse_keys(settings, os.environ)
    if pool is not PoolName.act:
        configuration.require_model(settings)

    def report_ready() -> None:
        echo(f"worker {os.getpid()} serves {settings.fleet.address}, pool {pool.value}")

    async def go() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, stop.set)
        await serve_fleet(settings, pool.value, at_once or settings.fleet.at_once, stop, report_ready)

    asyncio.run(go())
    echo("worker stopped")
