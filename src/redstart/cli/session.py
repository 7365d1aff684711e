"""Driving a run from the command line: header, live display, ending, exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from redstart.app.exits import INTERRUPTED, exit_code
from redstart.app.runs import go_on, write_patch, write_project
from redstart.app.settings import Settings
from redstart.app.wire import House, engine_called, open_house
from redstart.cli.display import Display, display
from redstart.core.errors import PortError
from redstart.core.run import Limits, Mode, RunState, Status, Step
from redstart.core.shell import Environment
from redstart.ports.model.port import Model
from redstart.ports.world.port import World

_HEADLINES = {
    "verified": ("GREEN", "bold green"),
    "already_green": ("GREEN", "bold green"),
    "unsolved": ("NOT SOLVED", "bold red"),
    "stuck": ("STUCK", "bold red"),
    "capped": ("CAP REACHED", "bold yellow"),
    "no_tests": ("NO TESTS", "bold yellow"),
    "environment": ("CANNOT RUN THE TESTS", "bold yellow"),
    "refused": ("REFUSED", "bold red"),
    "needs_human": ("WAITS FOR YOU", "bold yellow"),
}


class How(NamedTuple):
    """What the flags say of how a run is driven and shown."""

    json: bool = False
    verbose: bool = False
    unsafe: bool = False
    engine: str = "langgraph"
    until: Step | None = None
    patch: Path | None = None
    model: Model | None = None
    world: World | None = None
    dry_run: bool = False
    passing: bool = False
    """Nothing of the run is kept (the demo): the patch is shown instead of where it lies."""


def drive_run(settings: Settings, how: How, begin: Callable[[House], Awaitable[RunState]]) -> int:
    """Begins or finds a run with `begin`, drives it and says how it ended. Returns the exit code."""
    with ExitStack() as stack:
        shown = stack.enter_context(display(json=how.json, verbose=how.verbose))
        house = stack.enter_context(open_house(settings, listen=shown, world=how.world))
        return asyncio.run(_drive(house, how, begin, shown))


async def _drive(house: House, how: How, begin: Callable[[House], Awaitable[RunState]], shown: Display) -> int:
    run_id = ""
    try:
        state = await begin(house)
        run_id = state.run_id
        if state.status is Status.running:
            house = house.with_sandbox(unsafe=how.unsafe).with_model(how.model)
            shown.say(header(house, state), "dim")
            if how.dry_run:
                shown.say(f"nothing was run. Go on with: redstart resume {run_id}")
                return 0
            state = (await go_on(house, run_id, engine_called(how.engine), how.until)).state
    except (KeyboardInterrupt, asyncio.CancelledError):
        shown.say(f"interrupted; what was done is kept. Go on with: redstart resume {run_id}".rstrip())
        return INTERRUPTED
    except PortError as error:
        if run_id:
            error.remedy = f"{error.remedy}\nwhat was done is kept. Go on with: redstart resume {run_id}".lstrip()
        raise
    await say_ending(house, state, shown, how)
    return exit_code(state)


def header(house: House, state: RunState) -> str:
    """One line before the first call: what will be run, where, and within which caps."""
    spec, sandbox = state.spec, house.adapters.sandbox
    environment = Environment.model_validate_json(house.adapters.blobs.get(spec.suite.environment))
    parts = (
        f"run {state.run_id}",
        spec.repo,
        spec.suite.runner,
        f"{Path(environment.python).name} ({environment.chosen})" if environment.chosen else "",
        f"sandbox {sandbox.tier if sandbox else 'none'}",
        f"model {house.settings.models.strong}",
        caps(spec.limits),
    )
    return " · ".join(part for part in parts if part)


def caps(limits: Limits) -> str:
    told = [_many(limits.iterations, "attempt")]
    if limits.usd is not None:
        told.append(f"${limits.usd:g}")
    if limits.minutes is not None:
        told.append(f"{limits.minutes:g} min")
    return "at most " + ", ".join(told)


async def say_ending(house: House, state: RunState, shown: Display, how: How) -> None:
    """How the run ended, what it made and what to type next. Writes the patch or the project where there is one."""
    if state.status is Status.running:
        step = state.last.value if state.last else "the start"
        shown.say(f"stopped after {step}. Go on with: redstart resume {state.run_id}", "bold")
        return
    headline, style = _HEADLINES[state.result.value if state.result else "needs_human"]
    shown.say(f"\n{headline}  {state.reason}", style)
    if state.spec.mode is Mode.create:
        await _hand_over_project(house, state, shown)
    elif path := write_patch(house, state, how.patch):
        _hand_over_patch(path, state.run_id, shown, how)
    shown.say(cost(state) if how.passing else f"{cost(state)} · redstart show {state.run_id}", "dim")


def _hand_over_patch(path: Path, run_id: str, shown: Display, how: How) -> None:
    if how.passing:
        for line in path.read_text().splitlines():
            if line.startswith(("+", "-")):
                shown.say(f"    {line}", "green" if line.startswith("+") else "red")
        return
    shown.say(f"patch: {path}")
    shown.say(f"take it with: redstart apply {run_id}")


async def _hand_over_project(house: House, state: RunState, shown: Display) -> None:
    (row,) = await house.adapters.store.runs(prefix=state.run_id, limit=1)
    if write_project(house, state, Path(row.folder)):
        shown.say(f"project: {row.folder}")


def cost(state: RunState) -> str:
    spend = state.spend
    unknown = f" + {_many(spend.unpriced, 'call')} of unknown price" if spend.unpriced else ""
    parts = (
        _many(state.now.number, "attempt"),
        _many(spend.calls, "model call"),
        f"{spend.tokens:,} tokens",
        f"${spend.usd:.3f}{unknown}",
        f"{spend.seconds:.1f} s",
    )
    return " · ".join(parts)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
