"""The Python API: what the command line does, as functions."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from redstart.app import settings as configuration
from redstart.app.audit import AuditAsked, begin_audit, load_report
from redstart.app.create import begin_create, write_project
from redstart.app.improve import Wanted, begin_improve
from redstart.app.runs import Asked, begin_fix, go_on, write_patch
from redstart.app.settings import Settings
from redstart.app.wire import House, engine_called, open_house
from redstart.core.events import Event
from redstart.core.finding import Finding
from redstart.core.run import Limits, RunState


def fix(
    path: str | Path = ".",
    *,
    model: str | None = None,
    limits: Limits | None = None,
    test_command: tuple[str, ...] = (),
    patch: str | Path | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> RunState:
    """Makes the red tests of a repo green; returns how that ended. The repo is not touched.

    A verified patch is written to `patch`, where given. Raises `RedstartError` where something is broken.
    """

    async def begin(house: House) -> RunState:
        return await begin_fix(house, Path(path), _asked(house.settings, limits, test_command))

    return _run(configuration.load(model, Path(path)), on_event, begin, _to_file(patch))


def create(
    goal: str,
    out: str | Path,
    *,
    model: str | None = None,
    limits: Limits | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> RunState:
    """Makes a small tested program in the folder `out`; returns how that ended.

    Raises `RedstartError` where something is broken, or where `out` is not empty.
    """

    async def begin(house: House) -> RunState:
        return await begin_create(
            house, goal, Path(out), Asked(limits or house.settings.limits, verify=house.settings.verify)
        )

    return _run(
        configuration.load(model),
        on_event,
        begin,
        lambda house, state: write_project(house, state, Path(out).resolve()),
    )


def improve(
    path: str | Path = ".",
    *,
    cycles: int,
    goal: str = "",
    model: str | None = None,
    limits: Limits | None = None,
    patch: str | Path | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> RunState:
    """Tries so many improvements of a program, one after another; returns how that ended. The folder is not touched.

    What was kept is written to `patch`, where given. Raises `RedstartError` where something is broken.
    """

    async def begin(house: House) -> RunState:
        return await begin_improve(house, Path(path), Wanted(_asked(house.settings, limits), goal, cycles))

    return _run(configuration.load(model, Path(path)), on_event, begin, _to_file(patch))


def audit(
    path: str | Path = ".",
    *,
    goal: str = "",
    since: str = "",
    review: bool = False,
    model: str | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> tuple[Finding, ...]:
    """Looks a file or folder over and returns what was found; nothing is changed, and nothing of it is run.

    With `review` a model looks at the code too. Raises `RedstartError` where something is broken.
    """
    found: list[Finding] = []

    async def begin(house: House) -> RunState:
        return await begin_audit(house, Path(path), AuditAsked(house.settings.limits, goal, since, review=review))

    def hand_over(house: House, state: RunState) -> None:
        found.extend(load_report(house, state).findings)

    place = Path(path)
    settings = configuration.load(model, place if place.is_dir() else place.parent)
    needs_sandbox = any(settings.checks.commands.values())
    _run(settings, on_event, begin, hand_over, asks=review, runs=needs_sandbox)
    return tuple(found)


def _asked(settings: Settings, limits: Limits | None, command: tuple[str, ...] = ()) -> Asked:
    words = command or tuple(shlex.split(settings.tests.command))
    return Asked(limits or settings.limits, words, protect=settings.protect, verify=settings.verify)


def _to_file(patch: str | Path | None) -> Callable[[House, RunState], object]:
    """What hands a verified patch over: into this file, or not at all."""
    return lambda house, state: write_patch(house, state, Path(patch)) if patch is not None else None


def _run(
    settings: Settings,
    on_event: Callable[[Event], None] | None,
    begin: Callable[[House], Awaitable[RunState]],
    hand_over: Callable[[House, RunState], object],
    *,
    asks: bool = True,
    runs: bool = True,
) -> RunState:
    """`asks` and `runs` say whether the run needs a model, and a sandbox."""

    async def go(house: House) -> RunState:
        state = await begin(house)
        return (await go_on(house, state.run_id, engine_called("inline"))).state

    with open_house(settings, listen=on_event) as house:
        acting = house.with_sandbox() if runs else house
        ready = acting.with_model() if asks else acting
        state = asyncio.run(go(ready))
        hand_over(ready, state)
        return state
