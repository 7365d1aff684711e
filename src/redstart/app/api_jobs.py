"""The jobs behind the functions of the Python API: start a run, drive it, and make its result."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from redstart.app import settings as configuration
from redstart.app.answers import ResumeWish, check_models_of, hear, standing
from redstart.app.api_options import (
    AuditOptions,
    CreateOptions,
    FixOptions,
    ImproveOptions,
    Listener,
    PathLike,
    ResumeOptions,
    SharedOptions,
)
from redstart.app.audit import AuditRequest, begin_audit, load_report
from redstart.app.choices import resume_with
from redstart.app.control import clear
from redstart.app.create import begin_create, write_project
from redstart.app.improve import ImproveRequest, begin_improve
from redstart.app.objects import object_name
from redstart.app.proof.evidence import prove
from redstart.app.results import AuditResult, RunResult
from redstart.app.runs import RunRequest, begin_fix, find_run, go_on, result_snapshot, stored_options, write_patch
from redstart.app.settings import Settings
from redstart.app.standing import row_of
from redstart.app.wire import AppContext, connect, engine_called, open_house
from redstart.core.errors import ConfigError
from redstart.core.run import Limits, Mode, RunState, Status
from redstart.flow.route import waits_for_errands

T = TypeVar("T")


class StartedRun(NamedTuple):
    """A stored run, and the app context that drives it."""

    house: AppContext
    state: RunState


@dataclass(frozen=True, slots=True)
class ApiJob(Generic[T]):
    settings: Settings
    on_event: Listener | None
    begin: Callable[[AppContext], Awaitable[StartedRun]]
    finish: Callable[[AppContext, RunState], Awaitable[T]]

    async def carry_out(self, listen: Listener | None) -> T:
        with open_house(self.settings, listen=listen) as opened:
            house, state = await self.begin(opened)
            if _goes_on(state):
                state = (await go_on(house, state.run_id, engine_called())).state
            return await self.finish(house, state)


def fix_job(path: PathLike, options: FixOptions) -> ApiJob[RunResult]:
    _refuse_unknown("fix", options, FixOptions)

    async def begin(opened: AppContext) -> StartedRun:
        house = _equip(opened, options)
        return StartedRun(house, await begin_fix(house, Path(path), _asked(house.settings, options)))

    return ApiJob(_settings(options, Path(path)), options.get("on_event"), begin, _to_file(options.get("patch")))


def create_job(goal: str, out: PathLike, options: CreateOptions) -> ApiJob[RunResult]:
    _refuse_unknown("create", options, CreateOptions)

    async def begin(opened: AppContext) -> StartedRun:
        house = _equip(opened, options)
        asked = RunRequest(_limits(house.settings, options), verify=house.settings.verify)
        return StartedRun(house, await begin_create(house, goal, Path(out), asked))

    async def finish(house: AppContext, state: RunState) -> RunResult:
        write_project(house, state, Path(out).resolve())
        return await _result(house, state)

    return ApiJob(_settings(options), options.get("on_event"), begin, finish)


def improve_job(path: PathLike, cycles: int, options: ImproveOptions) -> ApiJob[RunResult]:
    _refuse_unknown("improve", options, ImproveOptions)

    async def begin(opened: AppContext) -> StartedRun:
        house = _equip(opened, options)
        wanted = ImproveRequest(_asked(house.settings, options), options.get("goal", ""), cycles)
        return StartedRun(house, await begin_improve(house, Path(path), wanted))

    return ApiJob(_settings(options, Path(path)), options.get("on_event"), begin, _to_file(options.get("patch")))


def audit_job(path: PathLike, options: AuditOptions) -> ApiJob[AuditResult]:
    _refuse_unknown("audit", options, AuditOptions)
    place, review = Path(path), options.get("review", False)

    async def begin(opened: AppContext) -> StartedRun:
        acts = any(opened.settings.checks.commands.values())
        house = _equip(opened, options, thinks=review, acts=acts)
        asked = AuditRequest(house.settings.limits, options.get("goal", ""), options.get("since", ""), review=review)
        return StartedRun(house, await begin_audit(house, place, asked))

    async def finish(house: AppContext, state: RunState) -> AuditResult:
        return AuditResult.of(state, load_report(house, state))

    settings = _settings(options, place if place.is_dir() else place.parent)
    return ApiJob(settings, options.get("on_event"), begin, finish)


def resume_job(run_id: str, options: ResumeOptions) -> ApiJob[RunResult]:
    _refuse_unknown("resume", options, ResumeOptions)
    model, sandbox, patch = options.get("model"), options.get("sandbox"), options.get("patch")
    settings = _settings(options)

    async def begin(opened: AppContext) -> StartedRun:
        found = (await hear(opened, await find_run(opened, run_id, Path()), ResumeWish())).run_id
        resumption = resume_with(settings, await stored_options(opened, found), flagged=model is not None)
        chosen, stored = resumption.settings, resumption.options
        if sandbox is not None:
            chosen = chosen.model_copy(update={"sandbox": settings.sandbox})
            stored = stored.model_copy(update={"sandbox": settings.sandbox.backend})
        await clear(opened, found)
        house, state = opened.with_settings(chosen), await standing(opened, found)
        if not _goes_on(state):
            return StartedRun(house, state)
        if model is None or isinstance(model, str):
            check_models_of(state, chosen)
        house = _equip(house, options)
        await house.adapters.store.choose(found, stored)
        return StartedRun(house, state)

    async def finish(house: AppContext, state: RunState) -> RunResult:
        if state.spec.mode is Mode.create:
            write_project(house, state, Path((await row_of(house, state.run_id)).folder))
        return await _to_file(patch)(house, state)

    return ApiJob(settings, options.get("on_event"), begin, finish)


def _refuse_unknown(function: str, options: Mapping[str, object], known: type) -> None:
    """Raise `TypeError`, as Python does for an unknown keyword argument."""
    for name in options.keys() - known.__annotations__.keys():
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def _settings(options: SharedOptions, project: Path | None = None) -> Settings:
    """Load the settings with these options. An object of the caller is replaced by its name."""
    given: Mapping[str, Any] = options
    model, sandbox = given.get("model"), given.get("sandbox")
    flags = {name: given.get(name) for name in ("reflect", "verify")}
    flags["sandbox.backend"] = sandbox if isinstance(sandbox, str) else None
    settings = configuration.load(
        model if model is None or isinstance(model, str) else object_name(model),
        project,
        {name: value for name, value in flags.items() if value is not None},
    )
    if sandbox is None or isinstance(sandbox, str):
        return settings
    own = settings.sandbox.model_copy(update={"backend": object_name(sandbox)})
    return settings.model_copy(update={"sandbox": own})


def _equip(house: AppContext, options: SharedOptions, *, thinks: bool = True, acts: bool = True) -> AppContext:
    """Add the sandbox and the model that the run needs. Raises if one is not available."""
    model, sandbox = options.get("model"), options.get("sandbox")
    if acts:
        house = house.with_sandbox(None if isinstance(sandbox, str) else sandbox)
    if not thinks:
        return house
    if model is None or isinstance(model, str):
        return house.with_model()
    return house.with_model(connect(house.settings, rates=house.rates, own=model))


def _goes_on(state: RunState) -> bool:
    return state.status is Status.running or waits_for_errands(state)


def _limits(settings: Settings, options: CreateOptions) -> Limits:
    return options.get("limits") or settings.limits


def _asked(settings: Settings, options: FixOptions | ImproveOptions) -> RunRequest:
    given: Mapping[str, Any] = options
    return RunRequest(
        _limits(settings, options),
        given.get("test_command") or tuple(shlex.split(settings.tests.command)),
        hint=given.get("hint", ""),
        targets=tuple(given.get("targets", ())),
        issue=given.get("issue", ""),
        protect=settings.protect,
        verify=settings.verify,
        tests=settings.tests.files,
    )


def _to_file(patch: PathLike | None) -> Callable[[AppContext, RunState], Awaitable[RunResult]]:
    """Return a function that makes the result and, if a file is given, writes a verified patch to it."""

    async def finish(house: AppContext, state: RunState) -> RunResult:
        if patch is not None:
            write_patch(house, state, Path(patch))
        return await _result(house, state)

    return finish


async def _result(house: AppContext, state: RunState) -> RunResult:
    snapshot = result_snapshot(state)
    diff = house.trees.diff(state.spec.base, snapshot).decode(errors="replace") if snapshot else ""
    try:
        return RunResult.of(state, diff, await prove(house, state))
    except ConfigError:  # the run has not ended, or proposed nothing
        return RunResult.of(state, diff, None)
