"""`redstart resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.app.answers import Heard
    from redstart.app.wire import House
    from redstart.core.run import RunState

Say = Annotated[str | None, typer.Option("--say", help="Tell the run something, in words.")]
Accept = Annotated[bool, typer.Option("--accept", help="Answer yes to what the run asks.")]
Reject = Annotated[bool, typer.Option("--reject", help="Answer no; --say may tell why.")]


def resume(
    run: options.RunId = None,
    say: Say = None,
    accept: Accept = False,
    reject: Reject = False,
    model: options.Model = None,
    max_iters: options.MaxIters = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    patch: options.PatchFile = None,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Go on with a run from its last committed step. What was paid for is not asked again.

    With --say, or with other limits, one that ended red goes on as a new run.
    """
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.answers import Wish, hear, standing
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house
    from redstart.cli.session import How, drive_run
    from redstart.core.errors import ConfigError
    from redstart.core.run import Step
    from redstart.ports.store.port import Word

    if accept and reject:
        raise ConfigError("--accept and --reject cannot both be meant")
    settings = configuration.load(model)
    answer = Word.accept if accept else Word.reject if reject else None
    wish = Wish(say, answer, max_iters, max_usd, max_minutes)

    async def listen(house: House) -> Heard:
        return await hear(house, await find_run(house, run, Path.cwd()), wish)

    with open_house(settings) as house:
        heard = asyncio.run(listen(house))
    if heard.note and not json:
        typer.echo(heard.note)
    if heard.driver is not None:
        raise typer.Exit

    async def begin(house: House) -> RunState:
        return await standing(house, heard.run_id)

    until = Step(stop_after.value) if stop_after else None
    how = How(json, verbose, unsafe_no_sandbox, engine.value, until, patch)
    raise typer.Exit(drive_run(settings, how, begin))
