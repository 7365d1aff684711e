"""The Python API: what the command line does, as functions. Each has an async twin (`fix`, `afix`)."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from redstart.app import settings as configuration
from redstart.app.aside import Aside
from redstart.app.audit import AuditAsked, begin_audit, load_report
from redstart.app.create import begin_create, write_project
from redstart.app.improve import Wanted, begin_improve
from redstart.app.proof import prove
from redstart.app.results import AuditResult, RunResult
from redstart.app.runs import Asked, begin_fix, go_on, result_snapshot, write_patch
from redstart.app.settings import Settings
from redstart.app.wire import House, engine_called, open_house
from redstart.core.errors import ConfigError
from redstart.core.events import Event
from redstart.core.run import Limits, RunState

T = TypeVar("T")
Listener = Callable[[Event], None]
PathLike = str | Path
Reflect = Literal["auto", "always", "never"]
"""When the strong model is asked why an attempt failed."""


def fix(
    path: PathLike = ".",
    *,
    model: str | None = None,
    limits: Limits | None = None,
    reflect: Reflect | None = None,
    test_command: tuple[str, ...] = (),
    patch: PathLike | None = None,
    on_event: Listener | None = None,
) -> RunResult:
    """Make the failing tests of a repo pass, and return how that ended. The repo is not touched.

    A verified patch is written to the file `patch`, if given. Raises `RedstartError` if something is broken, and
    `ConfigError` inside a running event loop: use `await afix(...)` there.
    """
    return _block("fix", lambda: _fix_job(path, model, limits, test_command, patch, reflect), on_event)


async def afix(
    path: PathLike = ".",
    *,
    model: str | None = None,
    limits: Limits | None = None,
    reflect: Reflect | None = None,
    test_command: tuple[str, ...] = (),
    patch: PathLike | None = None,
    on_event: Listener | None = None,
) -> RunResult:
    """`fix` for a running event loop, which stays free meanwhile. Cancel the task to stop the run."""
    return await _await(_fix_job(path, model, limits, test_command, patch, reflect), on_event)


def create(
    goal: str,
    out: PathLike,
    *,
    model: str | None = None,
    limits: Limits | None = None,
    reflect: Reflect | None = None,
    on_event: Listener | None = None,
) -> RunResult:
    """Create a small tested program in the directory `out`, and return how that ended.

    Raises `RedstartError` if something is broken or `out` is not empty, and `ConfigError` inside a running event loop:
    use `await acreate(...)` there.
    """
    return _block("create", lambda: _create_job(goal, out, model, limits, reflect), on_event)


async def acreate(
    goal: str,
    out: PathLike,
    *,
    model: str | None = None,
    limits: Limits | None = None,
    reflect: Reflect | None = None,
    on_event: Listener | None = None,
) -> RunResult:
    """`create` for a running event loop, which stays free meanwhile. Cancel the task to stop the run."""
    return await _await(_create_job(goal, out, model, limits, reflect), on_event)


def improve(
    path: PathLike = ".",
    *,
    cycles: int,
    goal: str = "",
    model: str | None = None,
    limits: Limits | None = None,
    reflect: Reflect | None = None,
    patch: PathLike | None = None,
    on_event: Listener | None = None,
) -> RunResult:
    """Try that many improvements of a program, one after another, and return how that ended. Its files are not touched.

    The improvements that were kept are written to the file `patch`, if given. Raises `RedstartError` if something is
    broken, and `ConfigError` inside a running event loop: use `await aimprove(...)` there.
    """
    return _block("improve", lambda: _improve_job(path, cycles, goal, model, limits, patch, reflect), on_event)


async def aimprove(
    path: PathLike = ".",
    *,
    cycles: int,
    goal: str = "",
    model: str | None = None,
    limits: Limits | None = None,
    reflect: Reflect | None = None,
    patch: PathLike | None = None,
    on_event: Listener | None = None,
) -> RunResult:
    """`improve` for a running event loop, which stays free meanwhile. Cancel the task to stop the run."""
    return await _await(_improve_job(path, cycles, goal, model, limits, patch, reflect), on_event)


def audit(
    path: PathLike = ".",
    *,
    goal: str = "",
    since: str = "",
    review: bool = False,
    model: str | None = None,
    on_event: Listener | None = None,
) -> AuditResult:
    """Check a file or directory and return the findings. Nothing is changed, and none of its code runs.

    With `review` a model reviews the code too. A baseline file is not read. Raises `RedstartError` if something is
    broken, and `ConfigError` inside a running event loop: use `await aaudit(...)` there.
    """
    return _block("audit", lambda: _audit_job(path, goal, since, model, review=review), on_event)


async def aaudit(
    path: PathLike = ".",
    *,
    goal: str = "",
    since: str = "",
    review: bool = False,
    model: str | None = None,
    on_event: Listener | None = None,
) -> AuditResult:
    """`audit` for a running event loop, which stays free meanwhile. Cancel the task to stop the run."""
    return await _await(_audit_job(path, goal, since, model, review=review), on_event)


# -- what each of them does ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    """A run to be begun, and what is made of it once it has ended."""

    settings: Settings
    begin: Callable[[House], Awaitable[RunState]]
    finish: Callable[[House, RunState], Awaitable[T]]
    asks: bool = True
    """Whether it needs a model."""
    runs: bool = True
    """Whether it needs a sandbox."""

    async def carry_out(self, on_event: Listener | None) -> T:
        with open_house(self.settings, listen=on_event) as house:
            acting = house.with_sandbox() if self.runs else house
            ready = acting.with_model() if self.asks else acting
            begun = await self.begin(ready)
            ended = (await go_on(ready, begun.run_id, engine_called())).state
            return await self.finish(ready, ended)


def _reflecting(policy: Reflect | None) -> dict[str, object]:
    return {} if policy is None else {"reflect": policy}


def _fix_job(
    path: PathLike,
    model: str | None,
    limits: Limits | None,
    command: tuple[str, ...],
    patch: PathLike | None,
    reflect: Reflect | None,
) -> _Job[RunResult]:
    async def begin(house: House) -> RunState:
        return await begin_fix(house, Path(path), _asked(house.settings, limits, command))

    return _Job(configuration.load(model, Path(path), _reflecting(reflect)), begin, _to_file(patch))


def _create_job(
    goal: str, out: PathLike, model: str | None, limits: Limits | None, reflect: Reflect | None
) -> _Job[RunResult]:
    async def begin(house: House) -> RunState:
        asked = Asked(limits or house.settings.limits, verify=house.settings.verify)
        return await begin_create(house, goal, Path(out), asked)

    async def finish(house: House, state: RunState) -> RunResult:
        write_project(house, state, Path(out).resolve())
        return await _result(house, state)

    return _Job(configuration.load(model, flags=_reflecting(reflect)), begin, finish)


def _improve_job(
    path: PathLike,
    cycles: int,
    goal: str,
    model: str | None,
    limits: Limits | None,
    patch: PathLike | None,
    reflect: Reflect | None,
) -> _Job[RunResult]:
    async def begin(house: House) -> RunState:
        return await begin_improve(house, Path(path), Wanted(_asked(house.settings, limits), goal, cycles))

    return _Job(configuration.load(model, Path(path), _reflecting(reflect)), begin, _to_file(patch))


def _audit_job(path: PathLike, goal: str, since: str, model: str | None, *, review: bool) -> _Job[AuditResult]:
    async def begin(house: House) -> RunState:
        return await begin_audit(house, Path(path), AuditAsked(house.settings.limits, goal, since, review=review))

    async def finish(house: House, state: RunState) -> AuditResult:
        return AuditResult.of(state, load_report(house, state))

    place = Path(path)
    settings = configuration.load(model, place if place.is_dir() else place.parent)
    return _Job(settings, begin, finish, asks=review, runs=any(settings.checks.commands.values()))


def _asked(settings: Settings, limits: Limits | None, command: tuple[str, ...] = ()) -> Asked:
    words = command or tuple(shlex.split(settings.tests.command))
    asked = Asked(limits or settings.limits, words, protect=settings.protect, verify=settings.verify)
    return asked._replace(tests=settings.tests.files)


def _to_file(patch: PathLike | None) -> Callable[[House, RunState], Awaitable[RunResult]]:
    """Writes a verified patch to this file, if one is given."""

    async def finish(house: House, state: RunState) -> RunResult:
        if patch is not None:
            write_patch(house, state, Path(patch))
        return await _result(house, state)

    return finish


async def _result(house: House, state: RunState) -> RunResult:
    snapshot = result_snapshot(state)
    diff = house.trees.diff(state.spec.base, snapshot).decode(errors="replace") if snapshot else ""
    try:
        return RunResult.of(state, diff, await prove(house, state))
    except ConfigError:  # it has not ended, or proposed nothing
        return RunResult.of(state, diff, None)


def _block(name: str, make: Callable[[], _Job[T]], on_event: Listener | None) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make().carry_out(on_event))
    raise ConfigError(
        f"redstart.{name}() cannot run inside a running event loop; use: await redstart.a{name}(...)",
        remedy=f"await redstart.a{name}(...)",
    )


async def _await(job: _Job[T], on_event: Listener | None) -> T:
    aside: Aside[T] = Aside(lambda: job.carry_out(listener))
    listener = aside.relay(on_event) if on_event else None
    return await aside.run()
