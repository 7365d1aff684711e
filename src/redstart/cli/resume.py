"""`redstart resume`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.env_file import EnvFile, use_env_file

if TYPE_CHECKING:
    from redstart.app.answers import Heard
    from redstart.app.wire import House
    from redstart.core.run import RunState

Say = Annotated[str | None, typer.Option("--say", help="Tell the run something, in words.")]
Accept = Annotated[bool, typer.Option("--accept", help="Answer yes to what the run asks.")]
Reject = Annotated[bool, typer.Option("--reject", help="Answer no; --say may tell why.")]


class DriverName(StrEnum):
    """What can go on with a run: here in this process, or the fleet."""

    langgraph = "langgraph"
    inline = "inline"
    temporal = "temporal"


Driver = Annotated[
    DriverName | None,
    typer.Option("--engine", help="What goes on with it: temporal is the fleet. By default whoever has it now."),
]


def resume(
    run: options.RunId = None,
    say: Say = None,
    accept: Accept = False,
    reject: Reject = False,
    model: options.Model = None,
    env_file: EnvFile = None,
    max_attempts: options.MaxAttempts = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    reflect: options.Reflect = None,
    patch: options.PatchFile = None,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: Driver = None,
) -> None:
    """Go on with a run from its last committed step. What was paid for is not asked again.

    With --say, --reflect or other limits, a run that ended red goes on as a new run.
    """
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.answers import Wish, hear, standing
    from redstart.app.control import clear
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house
    from redstart.cli.session import How, drive_run
    from redstart.core.errors import ConfigError
    from redstart.core.run import Step
    from redstart.ports.store.port import Word

    if accept and reject:
        raise ConfigError("--accept and --reject cannot both be meant")
    use_env_file(env_file, Path())
    settings = configuration.load(model)
    word = Word.accept if accept else Word.reject if reject else None
    wish = Wish(say, word, max_attempts, max_usd, max_minutes, options.policy_of(reflect))

    async def listen(house: House) -> tuple[Heard, bool]:
        heard = await hear(house, await find_run(house, run, Path.cwd()), wish)
        if heard.driver is not None:
            return heard, False
        await clear(house, heard.run_id)
        return heard, await _whose(house, heard.run_id, engine)

    with open_house(settings) as house:
        heard, fleets = asyncio.run(listen(house))
    if heard.note and not json:
        typer.echo(heard.note)
    if heard.driver is not None:
        raise typer.Exit

    async def begin(house: House) -> RunState:
        return await standing(house, heard.run_id)

    until = Step(stop_after.value) if stop_after else None
    how = How(json, verbose, unsafe_no_sandbox, engine.value if engine else "langgraph", until, patch, detach=fleets)
    raise typer.Exit(drive_run(settings, how, begin))


async def _whose(house: House, run_id: str, engine: DriverName | None) -> bool:
    """Whether the fleet goes on with the run. Where it is to go on here instead, the fleet is told to let go of it."""
    from redstart.app.fleet import is_supervised, tell
    from redstart.core.errors import PortError

    state = await house.adapters.store.load(run_id)
    if engine is DriverName.temporal:
        return True
    if engine is None:
        try:
            return await is_supervised(house.settings, state)
        except PortError as error:
            error.remedy = f"to go on here all the same: redstart resume {run_id} --engine langgraph"
            raise
    try:
        await tell(house.settings, state, "let_go")
    except PortError as error:
        typer.echo(f"{error}\nIt may take the run over again when it is back.", err=True)
    return False
