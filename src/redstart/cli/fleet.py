"""`redstart fleet`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from redstart.engines.temporal.client import FleetClient

app = typer.Typer(
    help="Try a fleet on this machine, and see how one stands.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("up")
def up(
    workers: Annotated[int, typer.Option("--workers", min=1, help="How many workers.")] = 2,
    folder: Annotated[Path | None, typer.Option("--folder", help="Where its data lie.")] = None,
) -> None:
    """Start a fleet on this machine for a trial: a server, Postgres where it is found, and workers. Ctrl-C ends it."""
    from redstart.app import settings as configuration
    from redstart.app.trial import keep_up, trial

    settings = configuration.load()
    configuration.require_model(settings)
    with trial(settings, folder or settings.home / "fleet", workers) as running:
        typer.echo(f"the fleet is at {running.address}; runs are kept in {running.keeps}")
        typer.echo("use it from another terminal:")
        typer.echo(f"  . {running.variables}")
        typer.echo("  redstart fix --detach        # hand a run over")
        typer.echo("  redstart runs watch          # follow it")
        typer.echo("  redstart fleet status        # all runs that are under way")
        typer.echo("Ctrl-C ends it after the steps at hand; what was done is kept.")
        with suppress(KeyboardInterrupt):
            keep_up(running, typer.echo)
        typer.echo("stopping")


@app.command("status")
def status(
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many runs at the most.")] = 20,
) -> None:
    """Say how many workers there are and which runs are under way."""
    from redstart.app import settings as configuration

    settings = configuration.load()

    async def look(fleet: FleetClient) -> None:
        counts = await fleet.workers()
        typer.echo(f"{settings.fleet.address}: " + ", ".join(f"{count} to {pool}" for pool, count in counts.items()))
        for pool, count in counts.items():
            if not count:
                typer.echo(f"nobody is there to {pool}; start a worker: redstart worker --pool {pool}")
        for one in await fleet.supervised(settings.tenant, limit):
            typer.echo(f"{one.run_id}  {one.mode:<7} {one.outcome or one.status:<14} {one.repo}")

    _with_fleet(look)


@app.command("register")
def register() -> None:
    """Make the attributes that runs are listed by known to the fleet's server; once for each namespace."""

    async def make_known(fleet: FleetClient) -> None:
        new = await fleet.register()
        typer.echo(f"registered: {', '.join(new)}" if new else "they were known already")

    _with_fleet(make_known)


@app.command("promote")
def promote(
    build: Annotated[str | None, typer.Argument(help="Which build; by default the one of these settings.")] = None,
) -> None:
    """Have workers of this build go on with all runs, also those that an earlier build began."""
    from importlib.metadata import version

    from redstart.app import settings as configuration
    from redstart.core.errors import ConfigError

    fleet = configuration.load().fleet
    if not fleet.deployment:
        raise ConfigError("workers are not versioned", remedy="name a deployment: fleet.deployment")
    chosen = build or fleet.build or version("redstart")

    async def make_current(client: FleetClient) -> None:
        await client.promote(fleet.deployment, chosen)
        typer.echo(f"{fleet.deployment} {chosen} goes on with all runs")

    _with_fleet(make_current)


def _with_fleet(do: Callable[[FleetClient], Awaitable[None]]) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.fleet import reach

    async def go() -> None:
        await do(await reach(configuration.load()))

    asyncio.run(go())
