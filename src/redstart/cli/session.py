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

from redstart.app.answers import ResumeWish, hear, standing
from redstart.app.choices import DriveFlags
from redstart.app.doctor.checks import UNTESTED_MACOS
from redstart.app.exits import INTERRUPTED, exit_code
from redstart.app.fleet import require_fleet, submit
from redstart.app.handover import apply_run
from redstart.app.model_routes import models_in_words
from redstart.app.runs import go_on
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, check_models, engine_called, open_house
from redstart.cli.apply import report_applied
from redstart.cli.display import Display, display
from redstart.cli.ending import EarlyGreen, say_ending, say_kept
from redstart.cli.output import confirm, echo
from redstart.cli.words import sandbox_in_words, tests_in_words
from redstart.core.errors import PortError
from redstart.core.noun import many
from redstart.core.run import Limits, Mode, Result, RunState, Status, Step
from redstart.core.shell import Environment
from redstart.core.tasks import ImproveTask
from redstart.engines.port import Engine
from redstart.flow.route import waits_for_errands
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
    until: Step | None = None
    patch: Path | None = None
    model: Model | None = None
    world: World | None = None
    dry_run: bool = False
    may_take: Callable[[float], bool] | None = None
    """Asks whether verification may take so many seconds. None if nobody can be asked; then the limits decide."""
    passing: bool = False
    """The patch is not kept (the demo): show the patch, but not its path."""
    detach: bool = False
    """Submit the run to the fleet instead of driving it here."""
    apply: bool = False
    """Apply a verified patch to the working tree."""
    no_input: bool = False
    """Do not ask whether to apply the patch."""
    resumed: bool = False
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


def drive_run(settings: Settings, how: DriveMode, begin: Callable[[AppContext], Awaitable[RunState]]) -> int:
    """Begin or find a run with `begin`, drive it and show how it ended. Return the exit code."""
    if how.detach:
        require_fleet(settings)
    with ExitStack() as stack:
        shown = stack.enter_context(display(json=how.json, verbose=how.verbose))
        house = stack.enter_context(open_house(settings, listen=shown, world=how.world))
        driven = asyncio.run(_drive(house, how, begin, shown))
        if driven.is_unproven and _is_there_to_ask(how, shown) and _is_accepted(shown):
            driven = asyncio.run(_drive(house, how._replace(resumed=True), partial(_accept, driven.run_id), shown))
        has_patch = driven.is_over and driven.patch is not None and not driven.is_unproven
        code = _apply(house, driven.run_id, quiet=how.json) if has_patch and how.apply else driven.code
        kept = "" if how.passing else str(driven.patch or "")
        shown.finish(exit_code=code, patch=kept, applied=has_patch and how.apply and code == 0)
        # Ask only after the event loop has ended: inside it Ctrl-C would not reach the question.
        wants_it = has_patch and not how.apply and _is_there_to_ask(how, shown)
        if wants_it and _agrees_to("Apply this patch to your working tree?"):
            return _apply(house, driven.run_id)
        return code


def _is_there_to_ask(how: DriveMode, shown: Display) -> bool:
    return shown.is_terminal and sys.stdin.isatty() and not (how.no_input or how.passing)


def _is_accepted(shown: Display) -> bool:
    with shown.still():
        return _agrees_to("Accept this patch as a verified fix?")


async def _accept(run_id: str, house: AppContext) -> RunState:
    await hear(house, run_id, ResumeWish(answer=PersonWord.accept))
    return await standing(house, run_id)


def _agrees_to(question: str) -> bool:
    try:
        return confirm(question, default=False)
    except typer.Abort:
        echo()
        return False


def _apply(house: AppContext, run_id: str, *, quiet: bool = False) -> int:
    """Apply the patch to the working tree like `redstart apply`. Return the exit code of that command."""
    outcome = asyncio.run(apply_run(house, run_id))
    if quiet:
        return int(outcome.happened is HandoverEvent.refused)
    return report_applied(run_id, outcome)


async def _drive(
    house: AppContext, how: DriveMode, begin: Callable[[AppContext], Awaitable[RunState]], shown: Display
) -> DriveOutcome:
    run_id = ""
    green = EarlyGreen(house, shown)
    watched = replace(house.adapters, progress=shown.progress, before_step=green)
    house = replace(house, adapters=watched, flags=DriveFlags(how.unsafe, how.engine, how.patch))
    try:
        if not how.resumed:
            house = _checked(house, how)
        with shown.still() if how.may_take else nullcontext():
            state = await begin(house)
        run_id = state.run_id
        if how.detach:
            await submit(house, state)
            shown.say(f"run {run_id} is with the fleet; follow it with: redstart runs watch {run_id}", "bold")
            return DriveOutcome(0, run_id)
        if state.status is Status.running or waits_for_errands(state):
            if how.resumed:
                house = _checked(house, how)
            ready = house if how.dry_run else house.with_model(how.model)
            shown.say(header(house, state, sys.platform), "dim")
            engine = engine_called(how.engine)
            async with ticking(shown):
                state = await (
                    _look(house, run_id, engine) if how.dry_run else _go_on(ready, state, engine, how, shown)
                )
            if how.dry_run and state.status is Status.running:
                shown.say(f"dry run: no model was asked, nothing was changed; resume with: redstart resume {run_id}")
                return DriveOutcome(0, run_id)
    except (KeyboardInterrupt, asyncio.CancelledError):
        if not run_id:
            shown.say("interrupted before the run began")
            return DriveOutcome(INTERRUPTED)
        shown.say(f"paused: everything so far is saved; resume with: redstart resume {run_id}", "bold")
        return DriveOutcome(INTERRUPTED, run_id, await say_kept(house, run_id, shown, how.patch))
    except PortError as error:
        if run_id:
            error.remedy = f"{error.remedy}\nthe run is saved; resume with: redstart resume {run_id}".lstrip()
        raise
    announced = run_id in green.announced
    path = await say_ending(house, state, shown, patch=how.patch, announced=announced, passing=how.passing)
    is_over, is_unproven = state.status is Status.finished, state.result is Result.unproven
    return DriveOutcome(exit_code(state), run_id, path, is_over, is_unproven)


@asynccontextmanager
async def ticking(shown: Display) -> AsyncGenerator[None]:
    """Call the display's `tick` every second, so that it can show progress."""

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK)
            shown.tick()

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()


def _checked(house: AppContext, how: DriveMode) -> AppContext:
    """Return the context with a sandbox. Raise if the sandbox or a model is missing, before a run is stored."""
    if how.model is None and not how.dry_run:
        check_models(house.settings, keys=not how.detach)
    return house if how.detach else house.with_sandbox(unsafe=how.unsafe)


async def _go_on(house: AppContext, state: RunState, engine: Engine, how: DriveMode, shown: Display) -> RunState:
    """Drive the run to the end or the requested step. Ask the user first if verification will take long."""
    fresh = state.spec.mode is Mode.fix and state.now.reproduce is None
    if fresh and how.may_take is not None and how.until is None:
        state = (await go_on(house, state.run_id, engine, Step.reproduce)).state
        found = state.now.reproduce
        if found is not None and found.forecast > ASK_ABOVE:
            with shown.still():
                if not how.may_take(found.forecast):
                    return state
    return (await go_on(house, state.run_id, engine, how.until)).state


async def _look(house: AppContext, run_id: str, engine: Engine) -> RunState:
    """Run the tests, and end the run if there is nothing for a model to do. `house` has no model."""
    state = (await go_on(house, run_id, engine, Step.reproduce)).state
    found = state.now.reproduce
    return (await go_on(house, run_id, engine)).state if found and found.trouble else state


def header(house: AppContext, state: RunState, platform: str) -> str:
    """Format two lines to show before the first call: what will run; and where, with which model and limits.

    The number of tests is included once they have run. Before that, the line of the step that runs them shows it,
    before any model is asked. `platform` has the form of `sys.platform`.
    """
    spec, sandbox = state.spec, house.adapters.sandbox
    cycles = spec.task.cycles if isinstance(spec.task, ImproveTask) else 0
    counts = state.now.reproduce.report.counts if state.now.reproduce else None
    environment = Environment.model_validate_json(house.adapters.blobs.get(spec.suite.environment))
    what = (
        f"run {state.run_id}",
        spec.repo,
        describe_runner(spec.suite),
        describe_interpreter(spec.suite, environment),
        tests_in_words(counts.red, counts.passed, counts.skipped) if counts else "",
    )
    where = (
        sandbox_in_words(sandbox.tier, house.shortcomings) if sandbox else "sandbox none",
        models_in_words(house.settings, os.environ),
        f"limits {limits_in_words(spec.limits, cycles)}",
        UNTESTED_MACOS if platform == "darwin" else "",
    )
    return "\n".join(" · ".join(filter(None, line)) for line in (what, where))


def limits_in_words(limits: Limits, cycles: int = 0) -> str:
    parts = (
        many(cycles, "cycle") if cycles else "",
        many(limits.attempts, "attempt") if limits.attempts < NO_LIMIT else "",
        f"${limits.usd:g}" if limits.usd is not None else "",
        f"{limits.minutes:g} min" if limits.minutes is not None else "",
    )
    return ", ".join(filter(None, parts)) or "none"
