"""Driving a run from the command line: header, live display, ending, exit code."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from redstart.app.create import write_project
from redstart.app.doctor import UNTESTED_MACOS
from redstart.app.exits import INTERRUPTED, exit_code
from redstart.app.fleet import require_fleet, submit
from redstart.app.parts import part_ids
from redstart.app.runs import go_on, write_patch
from redstart.app.settings import Settings
from redstart.app.wire import House, engine_called, open_house
from redstart.cli.display import Display, display
from redstart.cli.side_by_side import side_by_side
from redstart.cli.words import sandbox_in_words, tests_in_words
from redstart.core.errors import PortError
from redstart.core.noun import many
from redstart.core.run import Limits, Mode, RunState, Status, Step
from redstart.core.shell import Environment
from redstart.engines.port import Engine
from redstart.flow.route import waits_for_a_person, waits_for_errands
from redstart.ports.model.port import Model
from redstart.ports.world.port import World

ASK_ABOVE = 600.0
"""Seconds that a proof may take without anybody being asked."""

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
    "reported": ("REPORTED", "bold green"),
    "found": ("FOUND", "bold red"),
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
    may_take: Callable[[float], bool] | None = None
    """Asks whether a proof may take so many seconds; None where nobody can be asked, and the caps decide."""
    passing: bool = False
    """Nothing of the run is kept (the demo): the patch is shown instead of where it lies."""
    detach: bool = False
    """The run is handed to the fleet instead."""


def drive_run(settings: Settings, how: How, begin: Callable[[House], Awaitable[RunState]]) -> int:
    """Begins or finds a run with `begin`, drives it and says how it ended. Returns the exit code."""
    if how.detach:
        require_fleet(settings)
    with ExitStack() as stack:
        shown = stack.enter_context(display(json=how.json, verbose=how.verbose))
        house = stack.enter_context(open_house(settings, listen=shown, world=how.world))
        return asyncio.run(_drive(house, how, begin, shown))


async def _drive(house: House, how: How, begin: Callable[[House], Awaitable[RunState]], shown: Display) -> int:
    run_id = ""
    try:
        state = await begin(house)
        run_id = state.run_id
        if how.detach:
            await submit(house, state)
            shown.say(f"run {run_id} is with the fleet. See how it goes: redstart runs watch {run_id}", "bold")
            return 0
        if state.status is Status.running or waits_for_errands(state):
            house = house.with_sandbox(unsafe=how.unsafe)
            ready = house.with_model(how.model)
            shown.say(header(house, state, sys.platform), "dim")
            engine = engine_called(how.engine)
            if how.dry_run:
                state = await _look(house, run_id, engine)
                if state.status is Status.running:
                    shown.say(f"no model was asked, nothing was changed. Go on with: redstart resume {run_id}")
                    return 0
            else:
                state = await _go_on(ready, state, engine, how)
    except (KeyboardInterrupt, asyncio.CancelledError):
        shown.say(f"interrupted; what was done is kept. Go on with: redstart resume {run_id}".rstrip())
        if run_id:
            await _say_kept(house, run_id, shown, how)
        return INTERRUPTED
    except PortError as error:
        if run_id:
            error.remedy = f"{error.remedy}\nwhat was done is kept. Go on with: redstart resume {run_id}".lstrip()
        raise
    await say_ending(house, state, shown, how)
    return exit_code(state)


async def _go_on(house: House, state: RunState, engine: Engine, how: How) -> RunState:
    """To the end, or to where the user said; a suite whose proof takes long is asked about when that is known."""
    fresh = state.spec.mode is Mode.fix and state.now.reproduce is None
    if fresh and how.may_take is not None and how.until is None:
        state = (await go_on(house, state.run_id, engine, Step.reproduce)).state
        found = state.now.reproduce
        if found is not None and found.forecast > ASK_ABOVE and not how.may_take(found.forecast):
            return state
    return (await go_on(house, state.run_id, engine, how.until)).state


async def _look(house: House, run_id: str, engine: Engine) -> RunState:
    """Sees which tests are red, and ends the run where there is nothing for a model to do. `house` has no model."""
    state = (await go_on(house, run_id, engine, Step.reproduce)).state
    found = state.now.reproduce
    return (await go_on(house, run_id, engine)).state if found and found.trouble else state


def header(house: House, state: RunState, platform: str) -> str:
    """One line before the first call: what will be run, where, and within which caps.

    How many tests there are is known when they have been run: from then on it is here, and until then the line of
    the step that runs them says it, before any model is asked. `platform` is as `sys.platform`.
    """
    spec, sandbox = state.spec, house.adapters.sandbox
    counts = state.now.reproduce.report.counts if state.now.reproduce else None
    environment = Environment.model_validate_json(house.adapters.blobs.get(spec.suite.environment))
    parts = (
        f"run {state.run_id}",
        spec.repo,
        spec.suite.runner,
        f"{Path(environment.python).name} ({environment.chosen})" if environment.chosen else "",
        tests_in_words(counts.red, counts.passed, counts.skipped) if counts else "",
        sandbox_in_words(sandbox.tier, house.shortcomings) if sandbox else "sandbox none",
        f"model {house.settings.models.strong}",
        many(spec.cycles, "cycle") if spec.cycles else "",
        caps(spec.limits),
        UNTESTED_MACOS if platform == "darwin" else "",
    )
    return " · ".join(part for part in parts if part)


def caps(limits: Limits) -> str:
    told = [many(limits.iterations, "attempt")]
    if limits.usd is not None:
        told.append(f"${limits.usd:g}")
    if limits.minutes is not None:
        told.append(f"{limits.minutes:g} min")
    return "at most " + ", ".join(told)


async def say_ending(house: House, state: RunState, shown: Display, how: How) -> None:
    """How the run ended, what it made and what to type next. Writes the patch or the project where there is one."""
    if state.status is Status.running or waits_for_errands(state):
        step = state.last.value if state.last else "the start"
        await _say_who_waits(house, state, shown)
        shown.say(f"stopped after {step}. Go on with: redstart resume {state.run_id}", "bold")
        await _say_kept(house, state.run_id, shown, how)
        return
    headline, style = _HEADLINES[state.result.value if state.result else "needs_human"]
    shown.say(f"\n{headline}  {state.reason}", style)
    if state.status is Status.paused:
        _say_proposal(house, state, shown)
        shown.say(f"answer with: redstart resume {state.run_id} --accept, or --reject [--say WHY]", "bold")
    if state.spec.mode is Mode.create:
        await _hand_over_project(house, state, shown)
    elif path := write_patch(house, state, how.patch):
        _hand_over_patch(path, state.run_id, shown, how)
    shown.say(cost(state) if how.passing else f"{cost(state)} · redstart show {state.run_id}", "dim")


async def _say_kept(house: House, run_id: str, shown: Display, how: How) -> None:
    """Of a run that goes on for as long as it is let: what can be had of it already."""
    state = await house.adapters.store.load(run_id)
    if state.spec.mode is Mode.improve and (path := write_patch(house, state, how.patch)):
        shown.say(f"{many(state.work.kept, 'improvement')} kept so far")
        _hand_over_patch(path, run_id, shown, how)


async def _say_who_waits(house: House, state: RunState, shown: Display) -> None:
    """The parts of the run that ask a person something, and how to answer them."""
    for run_id in await part_ids(house, state):
        part = await house.adapters.store.load(run_id)
        if waits_for_a_person(part):
            shown.say(f"\nWAITS FOR YOU  {part.spec.goal}: {part.reason}", "bold yellow")
            _say_proposal(house, part, shown)
            shown.say(f"answer with: redstart resume {run_id} --accept, or --reject [--say WHY]; then go on", "bold")


def _say_proposal(house: House, state: RunState, shown: Display) -> None:
    """The tests that the patch would change, as they are and as they would be."""
    made = state.now.made
    for path in state.now.apply.proposes if state.now.apply and made else ():
        old, new = (house.trees.read(one, path) or b"" for one in (state.base, made or state.base))
        shown.say(f"\n{path}: now, and as proposed", "bold")
        width = shutil.get_terminal_size().columns
        for mark, line in side_by_side(old.decode(errors="replace"), new.decode(errors="replace"), width):
            shown.say(line, "yellow" if mark == "changed" else "dim")


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
    unknown = f" + {many(spend.unpriced, 'call')} of unknown price" if spend.unpriced else ""
    parts = (
        many(state.now.number, "attempt"),
        many(spend.calls, "model call"),
        f"{spend.tokens:,} tokens",
        f"${spend.usd:.3f}{unknown}",
        f"{spend.seconds:.1f} s",
    )
    return " · ".join(parts)
