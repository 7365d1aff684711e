"""Drive a run from the command line: header, live display, ending, exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import typer

from redstart.app.doctor.checks import UNTESTED_MACOS
from redstart.app.exit_codes import INTERRUPTED, exit_code
from redstart.app.fleet import require_fleet, submit
from redstart.app.handover import apply_run
from redstart.app.model_routes import describe_models
from redstart.app.person_answers import ResumeWish, handle_resume, load_resumed_state
from redstart.app.run_choices import DriveFlags
from redstart.app.runs import go_on
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, check_models, load_engine, open_app
from redstart.cli.apply import report_applied
from redstart.cli.display import Display, display
from redstart.cli.event_text import describe_sandbox, describe_tests
from redstart.cli.output import confirm, echo
from redstart.cli.run_summary import EarlyGreen, print_ending, print_kept_improvements
from redstart.core.errors import PortError
from redstart.core.frozen import format_count
from redstart.core.run import Limits, Mode, Result, RunState, Status, Step
from redstart.core.shell import Environment
from redstart.core.tasks import ImproveTask
from redstart.engines.port import Engine
from redstart.flow.route import is_waiting_for_children
from redstart.ports.model.port import Model
from redstart.ports.store.port.runs import PersonWord
from redstart.ports.world.port import World
from redstart.toolkit.repo.handover import HandoverEvent
from redstart.toolkit.suites.detection.describe import describe_interpreter, describe_runner

ASK_ABOVE = 600.0
"""Seconds that a verification may take before a person is asked."""
NO_LIMIT = 1_000
"""Number of attempts from which their limit is not shown."""
TICK = 1.0


class DriveMode(NamedTuple):
    """How to drive and show a run, from the flags."""

    json: bool = False
    verbose: bool = False
    unsafe: bool = False
    engine: str = "langgraph"
    last_step: Step | None = None
    patch: Path | None = None
    model: Model | None = None
    world: World | None = None
    dry_run: bool = False
    may_take: Callable[[float], bool] | None = None
    """Asks whether verification may take so many seconds. None if nobody can be asked; then the limits decide."""
    is_demo: bool = False
    """The patch is not kept (the demo): show the patch, but not its path."""
    detach: bool = False
    """Submit the run to the fleet instead of driving it here."""
    apply: bool = False
    """Apply a verified patch to the working tree."""
    no_input: bool = False
    """Do not ask whether to apply the patch."""
    is_resumed: bool = False
    """The run is already stored."""


class DriveOutcome(NamedTuple):
    """The outcome of driving a run."""

    code: int
    run_id: str = ""
    patch: Path | None = None
    is_over: bool = False
    """Whether the run has ended. Then its patch, if there is one, can be applied."""
    is_unproven: bool = False
    """Whether only a person can accept the patch."""
    is_partial: bool = False
    """Whether that is because failing tests are set aside."""


def drive_run(settings: Settings, drive_mode: DriveMode, start_run: Callable[[AppContext], Awaitable[RunState]]) -> int:
    """Begin or find a run with `start_run`, drive it and show how it ended. Return the exit code."""
    if drive_mode.detach:
        require_fleet(settings)
    with ExitStack() as stack:
        ui = stack.enter_context(display(json=drive_mode.json, verbose=drive_mode.verbose))
        app = stack.enter_context(open_app(settings, listen=ui, world=drive_mode.world))
        outcome = asyncio.run(_drive(app, drive_mode, start_run, ui))
        if outcome.is_unproven and _can_ask_user(drive_mode, ui) and _is_accepted(ui, is_partial=outcome.is_partial):
            outcome = asyncio.run(
                _drive(app, drive_mode._replace(is_resumed=True), partial(_accept, outcome.run_id), ui)
            )
        has_patch = outcome.is_over and outcome.patch is not None and not outcome.is_unproven
        code = _apply(app, outcome.run_id, quiet=drive_mode.json) if has_patch and drive_mode.apply else outcome.code
        patch_path = "" if drive_mode.is_demo else str(outcome.patch or "")
        ui.finish(exit_code=code, patch=patch_path, applied=has_patch and drive_mode.apply and code == 0)
        # Ask only after the event loop has ended: inside it Ctrl-C would not reach the question.
        wants_it = has_patch and not drive_mode.apply and _can_ask_user(drive_mode, ui)
        if wants_it and _ask_confirmation("Apply this patch to your working tree?"):
            return _apply(app, outcome.run_id)
        return code


def _can_ask_user(drive_mode: DriveMode, ui: Display) -> bool:
    return ui.is_terminal and sys.stdin.isatty() and not (drive_mode.no_input or drive_mode.is_demo)


def _is_accepted(ui: Display, *, is_partial: bool) -> bool:
    question = "Accept this patch, and leave the tests that are set aside as they are?"
    with ui.pause_updates():
        return _ask_confirmation(question if is_partial else "Accept this patch as a verified fix?")


async def _accept(run_id: str, app: AppContext) -> RunState:
    await handle_resume(app, run_id, ResumeWish(answer=PersonWord.accept))
    return await load_resumed_state(app, run_id)


def _ask_confirmation(question: str) -> bool:
    try:
        return confirm(question, default=False)
    except typer.Abort:
        echo()
        return False


def _apply(app: AppContext, run_id: str, *, quiet: bool = False) -> int:
    """Apply the patch to the working tree like `redstart apply`. Return the exit code of that command."""
    outcome = asyncio.run(apply_run(app, run_id))
    if quiet:
        return int(outcome.happened is HandoverEvent.refused)
    return report_applied(run_id, outcome)


async def _drive(
    app: AppContext, drive_mode: DriveMode, start_run: Callable[[AppContext], Awaitable[RunState]], ui: Display
) -> DriveOutcome:
    run_id = ""
    announcer = EarlyGreen(app, ui)
    adapters = replace(app.adapters, progress=ui.show_progress, before_step=announcer)
    app = replace(app, adapters=adapters, flags=DriveFlags(drive_mode.unsafe, drive_mode.engine, drive_mode.patch))
    try:
        if not drive_mode.is_resumed:
            app = _prepare_app(app, drive_mode)
        with ui.pause_updates() if drive_mode.may_take else nullcontext():
            state = await start_run(app)
        run_id = state.run_id
        if drive_mode.detach:
            await submit(app, state)
            ui.print_line(f"run {run_id} is with the fleet; follow it with: redstart runs watch {run_id}", "bold")
            return DriveOutcome(0, run_id)
        if state.status is Status.running or is_waiting_for_children(state):
            if drive_mode.is_resumed:
                app = _prepare_app(app, drive_mode)
            ready = app if drive_mode.dry_run else app.with_model(drive_mode.model)
            ui.print_line(format_header(app, state, sys.platform), "dim")
            engine = load_engine(drive_mode.engine)
            async with refresh_periodically(ui):
                state = await (
                    _run_tests_only(app, run_id, engine)
                    if drive_mode.dry_run
                    else _go_on(ready, state, engine, drive_mode, ui)
                )
            if drive_mode.dry_run and state.status is Status.running:
                ui.print_line(
                    f"dry run: no model was asked, nothing was changed; resume with: redstart resume {run_id}"
                )
                return DriveOutcome(0, run_id)
    except (KeyboardInterrupt, asyncio.CancelledError):
        if not run_id:
            ui.print_line("interrupted before the run began")
            return DriveOutcome(INTERRUPTED)
        ui.print_line(f"paused: everything so far is saved; resume with: redstart resume {run_id}", "bold")
        return DriveOutcome(INTERRUPTED, run_id, await print_kept_improvements(app, run_id, ui, drive_mode.patch))
    except PortError as error:
        if run_id:
            error.remedy = f"{error.remedy}\nthe run is saved; resume with: redstart resume {run_id}".lstrip()
        raise
    is_announced = run_id in announcer.announced_runs
    path = await print_ending(
        app, state, ui, patch=drive_mode.patch, is_announced=is_announced, is_transient=drive_mode.is_demo
    )
    is_over, is_partial = state.status is Status.finished, state.result is Result.partial
    is_unproven = is_partial or state.result is Result.unproven
    return DriveOutcome(exit_code(state), run_id, path, is_over, is_unproven, is_partial)


@asynccontextmanager
async def refresh_periodically(ui: Display) -> AsyncGenerator[None]:
    """Call the display's `tick` every second, so that it can show progress."""

    async def refresh_forever() -> None:
        while True:
            await asyncio.sleep(TICK)
            ui.refresh()

    task = asyncio.create_task(refresh_forever())
    try:
        yield
    finally:
        task.cancel()


def _prepare_app(app: AppContext, drive_mode: DriveMode) -> AppContext:
    """Return the context with a sandbox. Raise if the sandbox or a model is missing, before a run is stored."""
    if drive_mode.model is None and not drive_mode.dry_run:
        check_models(app.settings, keys=not drive_mode.detach)
    return app if drive_mode.detach else app.with_sandbox(unsafe=drive_mode.unsafe)


async def _go_on(app: AppContext, state: RunState, engine: Engine, drive_mode: DriveMode, ui: Display) -> RunState:
    """Drive the run to the end or the requested step. Ask the user first if verification will take long."""
    is_new = state.spec.mode is Mode.fix and state.now.reproduce is None
    if is_new and drive_mode.may_take is not None and drive_mode.last_step is None:
        state = (await go_on(app, state.run_id, engine, Step.reproduce)).state
        reproduction = state.now.reproduce
        if reproduction is not None and reproduction.forecast > ASK_ABOVE:
            with ui.pause_updates():
                if not drive_mode.may_take(reproduction.forecast):
                    return state
    return (await go_on(app, state.run_id, engine, drive_mode.last_step)).state


async def _run_tests_only(app: AppContext, run_id: str, engine: Engine) -> RunState:
    """Run the tests, and end the run if there is nothing for a model to do. `app` has no model."""
    state = (await go_on(app, run_id, engine, Step.reproduce)).state
    reproduction = state.now.reproduce
    return (await go_on(app, run_id, engine)).state if reproduction and reproduction.trouble else state


def format_header(app: AppContext, state: RunState, platform: str) -> str:
    """Format two lines to show before the first call: what will run; and where, with which model and limits.

    The number of tests is included once they have run. Before that, the line of the step that runs them shows it,
    before any model is asked. `platform` has the form of `sys.platform`.
    """
    spec, sandbox = state.spec, app.adapters.sandbox
    cycles = spec.task.cycles if isinstance(spec.task, ImproveTask) else 0
    counts = state.now.reproduce.report.counts if state.now.reproduce else None
    environment = Environment.model_validate_json(app.adapters.blobs.get(spec.suite.environment))
    run_parts = (
        f"run {state.run_id}",
        spec.repo,
        describe_runner(spec.suite),
        describe_interpreter(spec.suite, environment),
        describe_tests(counts.red, counts.passed, counts.skipped) if counts else "",
    )
    environment_parts = (
        describe_sandbox(sandbox.tier, app.shortcomings) if sandbox else "sandbox none",
        describe_models(app.settings, os.environ),
        f"limits {describe_limits(spec.limits, cycles)}",
        UNTESTED_MACOS if platform == "darwin" else "",
    )
    return "\n".join(" · ".join(filter(None, line)) for line in (run_parts, environment_parts))


def describe_limits(limits: Limits, cycles: int = 0) -> str:
    parts = (
        format_count(cycles, "cycle") if cycles else "",
        format_count(limits.attempts, "attempt") if limits.attempts < NO_LIMIT else "",
        f"${limits.usd:g}" if limits.usd is not None else "",
        f"{limits.minutes:g} min" if limits.minutes is not None else "",
    )
    return ", ".join(filter(None, parts)) or "none"
