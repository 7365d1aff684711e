"""The Python API: what the command line does, as functions."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from redstart.app import settings as configuration
from redstart.app.runs import Asked, begin_create, begin_fix, go_on, write_patch, write_project
from redstart.app.settings import Settings
from redstart.app.wire import House, engine_called, open_house
from redstart.core.events import Event
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
        command = test_command or tuple(shlex.split(house.settings.tests.command))
        settings = house.settings
        asked = Asked(limits or settings.limits, command, protect=settings.protect, verify=settings.verify)
        return await begin_fix(house, Path(path), asked)

    def hand_over(house: House, state: RunState) -> None:
        if patch is not None:
            write_patch(house, state, Path(patch))

    return _run(configuration.load(model, Path(path)), on_event, begin, hand_over)


def create(
    goal: str,
    out: str | Path,
    *,
    model: str | None = None,
    limits: Limits | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> RunState:
    """Makes a small tested Python program in the folder `out`; returns how that ended.

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


def _run(
    settings: Settings,
    on_event: Callable[[Event], None] | None,
    begin: Callable[[House], Awaitable[RunState]],
    hand_over: Callable[[House, RunState], object],
) -> RunState:
    async def go(house: House) -> RunState:
        state = await begin(house)
        return (await go_on(house, state.run_id, engine_called("inline"))).state

    with open_house(settings, listen=on_event) as house:
        ready = house.with_sandbox().with_model()
        state = asyncio.run(go(ready))
        hand_over(ready, state)
        return state
