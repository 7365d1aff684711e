"""The jobs behind the functions of the Python API: start a run, drive it, and make its result."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from redstart.app import settings as configuration
from redstart.app.api_options import (
    AttemptOptions,
    AuditOptions,
    CreateOptions,
    FixOptions,
    ImproveOptions,
    Listener,
    PathLike,
    ResumeOptions,
    SharedOptions,
)
from redstart.app.audit import AuditRequest, create_audit_run, load_report
from redstart.app.control import clear
from redstart.app.create import create_program_run, write_project
from redstart.app.improve import ImproveRequest, create_improve_run
from redstart.app.objects import format_object_name
from redstart.app.person_answers import ResumeWish, check_run_models, handle_resume, load_resumed_state
from redstart.app.proof.evidence import prove
from redstart.app.results import AuditResult, RunResult
from redstart.app.run_choices import resume_with
from redstart.app.run_status import load_row
from redstart.app.runs import (
    CandidateRequest,
    RunRequest,
    create_fix_run,
    find_run,
    get_result_snapshot,
    go_on,
    load_stored_options,
    write_patch,
)
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, connect, load_engine, open_app
from redstart.core.errors import ConfigError
from redstart.core.run import Limits, Mode, RunState, Status
from redstart.core.set_aside import SetAsidePolicy
from redstart.flow.route import is_waiting_for_children

T = TypeVar("T")


class StartedRun(NamedTuple):
    """A stored run, and the app context that drives it."""

    app: AppContext
    state: RunState


@dataclass(frozen=True, slots=True)
class ApiJob(Generic[T]):
    settings: Settings
    on_event: Listener | None
    start_run: Callable[[AppContext], Awaitable[StartedRun]]
    finish: Callable[[AppContext, RunState], Awaitable[T]]

    async def carry_out(self, listen: Listener | None) -> T:
        with open_app(self.settings, listen=listen) as base_app:
            app, state = await self.start_run(base_app)
            if _can_continue(state):
                state = (await go_on(app, state.run_id, load_engine())).state
            return await self.finish(app, state)


def fix_job(path: PathLike, options: FixOptions) -> ApiJob[RunResult]:
    refuse_unknown("fix", options, FixOptions)

    async def start_run(base_app: AppContext) -> StartedRun:
        app = _equip(base_app, options)
        return StartedRun(app, await create_fix_run(app, Path(path), _build_request(app.settings, options)))

    return ApiJob(
        load_settings(options, Path(path)), options.get("on_event"), start_run, _to_file(options.get("patch"))
    )


def create_job(goal: str, out: PathLike, options: CreateOptions) -> ApiJob[RunResult]:
    refuse_unknown("create", options, CreateOptions)

    async def start_run(base_app: AppContext) -> StartedRun:
        app = _equip(base_app, options)
        limits = _choose_limits(app.settings, options)
        request = RunRequest(limits, verify=app.settings.verify, session=options.get("session"))
        return StartedRun(app, await create_program_run(app, goal, Path(out), request))

    async def finish(app: AppContext, state: RunState) -> RunResult:
        write_project(app, state, Path(out).resolve())
        return await _build_result(app, state)

    return ApiJob(load_settings(options), options.get("on_event"), start_run, finish)


def improve_job(path: PathLike, cycles: int, options: ImproveOptions) -> ApiJob[RunResult]:
    refuse_unknown("improve", options, ImproveOptions)

    async def start_run(base_app: AppContext) -> StartedRun:
        app = _equip(base_app, options)
        request = ImproveRequest(_build_request(app.settings, options), options.get("goal", ""), cycles)
        return StartedRun(app, await create_improve_run(app, Path(path), request))

    return ApiJob(
        load_settings(options, Path(path)), options.get("on_event"), start_run, _to_file(options.get("patch"))
    )


def audit_job(path: PathLike, options: AuditOptions) -> ApiJob[AuditResult]:
    refuse_unknown("audit", options, AuditOptions)
    place, review = Path(path), options.get("review", False)

    async def start_run(base_app: AppContext) -> StartedRun:
        needs_sandbox = any(base_app.settings.checks.commands.values())
        app = _equip(base_app, options, needs_model=review, needs_sandbox=needs_sandbox)
        request = AuditRequest(app.settings.limits, options.get("goal", ""), options.get("since", ""), review=review)
        return StartedRun(app, await create_audit_run(app, place, request))

    async def finish(app: AppContext, state: RunState) -> AuditResult:
        return AuditResult.from_state(state, load_report(app, state))

    settings = load_settings(options, place if place.is_dir() else place.parent)
    return ApiJob(settings, options.get("on_event"), start_run, finish)


def resume_job(run_id: str, options: ResumeOptions) -> ApiJob[RunResult]:
    refuse_unknown("resume", options, ResumeOptions)
    model, sandbox, patch = options.get("model"), options.get("sandbox"), options.get("patch")
    settings = load_settings(options)

    async def start_run(base_app: AppContext) -> StartedRun:
        resumed_id = (await handle_resume(base_app, await find_run(base_app, run_id, Path()), ResumeWish())).run_id
        resumption = resume_with(
            settings, await load_stored_options(base_app, resumed_id), has_model_flag=model is not None
        )
        run_settings, stored = resumption.settings, resumption.options
        if sandbox is not None:
            run_settings = run_settings.model_copy(update={"sandbox": settings.sandbox})
            stored = stored.model_copy(update={"sandbox": settings.sandbox.backend})
        await clear(base_app, resumed_id)
        app, state = base_app.with_settings(run_settings), await load_resumed_state(base_app, resumed_id)
        if not _can_continue(state):
            return StartedRun(app, state)
        if model is None or isinstance(model, str):
            check_run_models(state, run_settings)
        app = _equip(app, options)
        await app.adapters.store.choose(resumed_id, stored)
        return StartedRun(app, state)

    async def finish(app: AppContext, state: RunState) -> RunResult:
        if state.spec.mode is Mode.create:
            write_project(app, state, Path((await load_row(app, state.run_id)).folder))
        return await _to_file(patch)(app, state)

    return ApiJob(settings, options.get("on_event"), start_run, finish)


def refuse_unknown(function: str, options: Mapping[str, object], option_type: type) -> None:
    """Raise `TypeError`, as Python does for an unknown keyword argument."""
    for name in options.keys() - option_type.__annotations__.keys():
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def load_settings(options: Mapping[str, Any], project: Path | None = None) -> Settings:
    """Load the settings with these options. An object of the caller is replaced by its name."""
    model, sandbox = options.get("model"), options.get("sandbox")
    flags = {name: options.get(name) for name in ("reflect", "verify")}
    flags["sandbox.backend"] = sandbox if isinstance(sandbox, str) else None
    settings = configuration.load(
        model if model is None or isinstance(model, str) else format_object_name(model),
        project,
        {name: value for name, value in flags.items() if value is not None},
    )
    if sandbox is None or isinstance(sandbox, str):
        return settings
    sandbox_settings = settings.sandbox.model_copy(update={"backend": format_object_name(sandbox)})
    return settings.model_copy(update={"sandbox": sandbox_settings})


def _equip(
    app: AppContext, options: SharedOptions, *, needs_model: bool = True, needs_sandbox: bool = True
) -> AppContext:
    """Add the sandbox and the model that the run needs. Raises if one is not available."""
    model, sandbox = options.get("model"), options.get("sandbox")
    if needs_sandbox:
        app = app.with_sandbox(None if isinstance(sandbox, str) else sandbox)
    if not needs_model:
        return app
    if model is None or isinstance(model, str):
        return app.with_model()
    return app.with_model(connect(app.settings, rates=app.rates, custom_model=model))


def _can_continue(state: RunState) -> bool:
    return state.status is Status.running or is_waiting_for_children(state)


def _choose_limits(settings: Settings, options: AttemptOptions) -> Limits:
    return options.get("limits") or settings.limits


def _build_request(settings: Settings, options: FixOptions | ImproveOptions) -> RunRequest:
    values: Mapping[str, Any] = options
    return RunRequest(
        _choose_limits(settings, options),
        values.get("test_command") or tuple(shlex.split(settings.tests.command)),
        hint=values.get("hint", ""),
        targets=tuple(values.get("targets", ())),
        issue=values.get("issue", ""),
        protect=settings.protect,
        verify=settings.verify,
        tests=settings.tests.files,
        session=values.get("session"),
        fresh=values.get("fresh", False),
        set_aside=SetAsidePolicy.all_red if values.get("all_red") else SetAsidePolicy.alone,
        candidates=CandidateRequest(
            values.get("candidates", 1), values.get("escalate", False), values.get("choose", False)
        ),
    )


def _to_file(patch: PathLike | None) -> Callable[[AppContext, RunState], Awaitable[RunResult]]:
    """Return a function that makes the result and, if a file is given, writes a verified patch to it."""

    async def finish(app: AppContext, state: RunState) -> RunResult:
        if patch is not None:
            write_patch(app, state, Path(patch))
        return await _build_result(app, state)

    return finish


async def _build_result(app: AppContext, state: RunState) -> RunResult:
    snapshot = get_result_snapshot(state)
    diff = app.trees.diff(state.spec.base, snapshot).decode(errors="replace") if snapshot else ""
    try:
        return RunResult.from_state(state, diff, await prove(app, state))
    except ConfigError:  # the run has not ended, or proposed nothing
        return RunResult.from_state(state, diff, None)
