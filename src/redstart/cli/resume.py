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
    from redstart.app.person_answers import ResumeAnswer, ResumeWish
    from redstart.app.run_choices import Resumption
    from redstart.app.wire import AppContext
    from redstart.core.run import RunState

Say = Annotated[str | None, typer.Option("--say", help="Give the run advice or an answer, in plain English.")]
Accept = Annotated[bool, typer.Option("--accept", help="Answer yes to the run's question.")]
Reject = Annotated[bool, typer.Option("--reject", help="Answer no; give a reason with --say.")]
Force = Annotated[bool, typer.Option("--force", help="Resume a run that was cancelled.")]
Model = Annotated[
    str | None,
    typer.Option("-m", "--model", help="Continue with this model, as provider:name (default: the run's own model)."),
]


class DriverName(StrEnum):
    """What can drive a resumed run: an engine in this process, or the fleet."""

    langgraph = "langgraph"
    inline = "inline"
    temporal = "temporal"


Driver = Annotated[
    DriverName | None,
    typer.Option(
        "--engine",
        help="Engine to continue the run with (default: the same engine as before); temporal means the fleet.",
    ),
]


class _Ready(NamedTuple):
    """A run to resume, and how to resume it."""

    answer: ResumeAnswer
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
    """Continue a run after its last completed step, with the same model and options. No step is paid for twice.

    With --say, --reflect or new limits, a run that ended with failing tests continues as a new run.
    """
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.person_answers import ResumeWish
    from redstart.app.wire import open_app
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.errors import ConfigError
    from redstart.core.run import Step
    from redstart.ports.store.port.runs import PersonWord

    if accept and reject:
        raise ConfigError("--accept and --reject cannot be combined", remedy="use only one of them")
    use_env_file(env_file, Path())
    settings = configuration.load(model)
    answer = PersonWord.accept if accept else PersonWord.reject if reject else None
    request = ResumeWish(
        say, answer, max_attempts, max_usd, max_minutes, options.resolve_reflection_policy(reflect), force
    )
    with open_app(settings) as app:
        ready = asyncio.run(_listen(app, run, request, engine, has_model_flag=model is not None))
    resume_answer, resumption = ready.answer, ready.resumption
    for note in (resume_answer.note, "" if resume_answer.driver is not None else resumption.note):
        if note and not json:
            echo(note)
    if resume_answer.driver is not None:
        raise typer.Exit

    async def start_run(app: AppContext) -> RunState:
        return await _load_resumed_run(app, ready)

    last_step = Step(stop_after.value) if stop_after else None
    run_options = resumption.options
    engine_name = engine.value if engine is not None else run_options.engine or "langgraph"
    file = patch or (Path(run_options.patch) if run_options.patch else None)
    drive_mode = DriveMode(
        json,
        verbose,
        unsafe_no_sandbox or run_options.unsafe,
        engine_name,
        last_step,
        file,
        detach=ready.by_fleet,
        is_resumed=True,
    )
    raise typer.Exit(drive_run(resumption.settings, drive_mode, start_run))


async def _listen(
    app: AppContext, run: str | None, request: ResumeWish, engine: DriverName | None, *, has_model_flag: bool
) -> _Ready:
    """Store the answer of the person. Raise first if the model that they name is not available."""
    from redstart.app.control import clear
    from redstart.app.person_answers import handle_resume
    from redstart.app.run_choices import resume_with
    from redstart.app.runs import find_run, load_stored_options
    from redstart.app.wire import check_models

    run_id = await find_run(app, run, Path.cwd())
    if has_model_flag:
        check_models(app.settings, keys=engine is not DriverName.temporal)
    resume_answer = await handle_resume(app, run_id, request)
    resumption = resume_with(
        app.settings, await load_stored_options(app, resume_answer.run_id), has_model_flag=has_model_flag
    )
    if resume_answer.driver is not None:
        return _Ready(resume_answer, resumption, by_fleet=False)
    await clear(app, resume_answer.run_id)
    return _Ready(resume_answer, resumption, await _is_continued_by_fleet(app, resume_answer.run_id, engine))


async def _load_resumed_run(app: AppContext, ready: _Ready) -> RunState:
    """Return the state of the resumed run. Raise `ConfigError` if its model is not available."""
    from redstart.app.person_answers import check_run_models, load_resumed_state
    from redstart.core.run import Status
    from redstart.flow.route import is_waiting_for_children

    state = await load_resumed_state(app, ready.answer.run_id)
    if state.status is not Status.running and not is_waiting_for_children(state):
        return state
    check_run_models(state, app.settings, keys=not ready.by_fleet)
    if ready.resumption.changed:
        await app.adapters.store.choose(state.run_id, ready.resumption.options)
    return state


async def _is_continued_by_fleet(app: AppContext, run_id: str, engine: DriverName | None) -> bool:
    """Return whether the fleet continues the run. If it continues here instead, tell the fleet to release it."""
    from redstart.app.fleet import is_supervised, send_signal
    from redstart.core.errors import PortError

    state = await app.adapters.store.load(run_id)
    if engine is DriverName.temporal:
        return True
    if engine is None:
        try:
            return await is_supervised(app.settings, state)
        except PortError as error:
            error.remedy = f"to continue here instead: redstart resume {run_id} --engine langgraph"
            raise
    try:
        await send_signal(app.settings, state, "let_go")
    except PortError as error:
        echo(f"{error}\nThe fleet may take over the run again when it is back.", err=True)
    return False
