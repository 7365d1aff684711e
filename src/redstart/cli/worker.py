"""`redstart worker`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from redstart.cli.output import echo


class PoolName(StrEnum):
    think = "think"
    act = "act"
    both = "both"


def worker(
    pool: Annotated[
        PoolName,
        typer.Option("--pool", help="What it does: think (ask models), act (run tests, without any key), or both."),
    ] = PoolName.both,
    at_once: Annotated[
        int | None, typer.Option("--at-once", min=1, help="Runs in parallel per pool (default 4).")
    ] = None,
) -> None:
    """Work on a fleet's runs until stopped. Ctrl-C or SIGTERM stops it after the current steps; nothing is lost.

    Example: redstart worker --pool act
    """
    import asyncio
    import os
    import signal

    from redstart.app import settings as configuration
    from redstart.app.worker import refuse_keys, work

    settings = configuration.load()
    if pool is PoolName.act:
        refuse_keys(settings, os.environ)
    if pool is not PoolName.act:
        configuration.require_model(settings)

    def ready() -> None:
        echo(f"worker {os.getpid()} serves {settings.fleet.address}, pool {pool.value}")

    async def go() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, stop.set)
        await work(settings, pool.value, at_once or settings.fleet.at_once, stop, ready)

    asyncio.run(go())
    echo("worker stopped")
