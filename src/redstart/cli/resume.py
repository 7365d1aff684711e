"""`redstart resume`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import echo

if TYPE_CHECKING:
    from redstart.app.answers import ResumeAnswer, ResumeWish
    from redstart.app.choices import Resumption
    from redstart.app.wire import AppContext
    from redstart.core.run import RunState

Say = Annotated[str | None, typer.Option("--say", help="Give the run advice or an answer, in plain English.")]
Accept = Annotated[bool, typer.Option("--accept", help="Answer yes to the question of the run.")]
Reject = Annotated[bool, typer.Option("--reject", help="Answer no. Give a reason with --say.")]
Force = Annotated[bool, typer.Option("--force", help="Resume a run that was cancelled.")]
Model = Annotated[
    str | None,
    typer.Option("-m", "--model", help="Continue with this model, as provider:name (default: the model of the run)."),
]


class DriverName(StrEnum):
    """What can drive a resumed run: an engine in this process, or the fleet."""

    langgraph = "langgraph"
    inline = "inline"
    temporal = "temporal"


Driver = Annotated[
    DriverName | None,
    typer.Option("--engine", help="Engine that drives the run; temporal is the fleet (default: that of the run)."),
]


class _Ready(NamedTuple):
    """A run to resume, and how to resume it."""

    heard: ResumeAnswer
    resumption: Resumption
    by_fleet: bool


def resume(
    run: options.RunId = None,
    say: Say = None,
    accept: Accept = False,
    reject: Reject = False,
    model: Model = None,
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
    force: Force = False,
) -> None:
    """Continue a run from its last committed step, with its own model and options. No step is paid for twice.

    With --say, --reflect or new limits, a run that ended while tests still fail continues as a new run.
    """
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.answers import ResumeWish
    from redstart.app.wire import open_house
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.errors import ConfigError
    from redstart.core.run import Step
    from redstart.ports.store.port.runs import PersonWord

    if accept and reject:
        raise ConfigError("--accept and --reject cannot be combined", remedy="use only one of them")
    use_env_file(env_file, Path())
    settings = configuration.load(model)
    word = PersonWord.accept if accept else PersonWord.reject if reject else None
    wish = ResumeWish(say, word, max_attempts, max_usd, max_minutes, options.policy_of(reflect), force)
    with open_house(settings) as house:
        ready = asyncio.run(_listen(house, run, wish, engine, flagged=model is not None))
    heard, chosen = ready.heard, ready.resumption
    for note in (heard.note, "" if heard.driver is not None else chosen.note):
        if note and not json:
            echo(note)
    if heard.driver is not None:
        raise typer.Exit

    async def begin(house: AppContext) -> RunState:
        return await _begin(house, ready)

    until = Step(stop_after.value) if stop_after else None
    kept = chosen.options
    here = engine.value if engine is not None else kept.engine or "langgraph"
    file = patch or (Path(kept.patch) if kept.patch else None)
    how = DriveMode(
        json, verbose, unsafe_no_sandbox or kept.unsafe, here, until, file, detach=ready.by_fleet, resumed=True
    )
    raise typer.Exit(drive_run(chosen.settings, how, begin))


async def _listen(
    house: AppContext, run: str | None, wish: ResumeWish, engine: DriverName | None, *, flagged: bool
) -> _Ready:
    """Store the answer of the person. Raise first if the model that they name is not available."""
    from redstart.app.answers import hear
    from redstart.app.choices import resume_with
    from redstart.app.control import clear
    from redstart.app.runs import find_run, stored_options
    from redstart.app.wire import check_models

    given = await find_run(house, run, Path.cwd())
    if flagged:
        check_models(house.settings, keys=engine is not DriverName.temporal)
    heard = await hear(house, given, wish)
    resumption = resume_with(house.settings, await stored_options(house, heard.run_id), flagged=flagged)
    if heard.driver is not None:
        return _Ready(heard, resumption, by_fleet=False)
    await clear(house, heard.run_id)
    return _Ready(heard, resumption, await _by_fleet(house, heard.run_id, engine))


async def _begin(house: AppContext, ready: _Ready) -> RunState:
    """Return the state of the resumed run. Raise `ConfigError` if its model is not available."""
    from redstart.app.answers import check_models_of, standing
    from redstart.core.run import Status
    from redstart.flow.route import waits_for_errands

    state = await standing(house, ready.heard.run_id)
    if state.status is not Status.running and not waits_for_errands(state):
        return state
    check_models_of(state, house.settings, keys=not ready.by_fleet)
    if ready.resumption.changed:
        await house.adapters.store.choose(state.run_id, ready.resumption.options)
    return state


async def _by_fleet(house: AppContext, run_id: str, engine: DriverName | None) -> bool:
    """Return whether the fleet continues the run. If it continues here instead, tell the fleet to release it."""
    from redstart.app.fleet import is_supervised, tell
    from redstart.core.errors import PortError

    state = await house.adapters.store.load(run_id)
    if engine is DriverName.temporal:
        return True
    if engine is None:
        try:
            return await is_supervised(house.settings, state)
        except PortError as error:
            error.remedy = f"to continue here instead: redstart resume {run_id} --engine langgraph"
            raise
    try:
        await tell(house.settings, state, "let_go")
    except PortError as error:
        echo(f"{error}\nThe fleet may take over the run again when it is back.", err=True)
    return False
