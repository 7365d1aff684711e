"""`redstart resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.app.wire import House
    from redstart.core.run import RunState


def resume(
    run: options.RunId = None,
    model: options.Model = None,
    patch: options.PatchFile = None,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Go on with a run from its last committed step. What was paid for is not asked again."""
    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.cli.session import How, drive_run
    from redstart.core.run import Step

    settings = configuration.load(model)

    async def begin(house: House) -> RunState:
        return await house.adapters.store.load(await find_run(house, run, Path.cwd()))

    until = Step(stop_after.value) if stop_after else None
    how = How(json, verbose, unsafe_no_sandbox, engine.value, until, patch)
    raise typer.Exit(drive_run(settings, how, begin))
