"""The use case of `redstart improve`: start a run, and report its cycles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from redstart.app.project_files import create_skeleton, make_package_name
from redstart.app.runs import RunRequest, create_run, take_folder
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, load_profile
from redstart.core.errors import ConfigError
from redstart.core.frozen import FrozenValue
from redstart.core.packages import Packages
from redstart.core.run import GOAL_LIMIT, Attempt, Limits, Result, RunState, Status, Step
from redstart.core.run_preferences import Metric, MetricDirection
from redstart.core.tasks import ImproveTask
from redstart.flow.child_runs import get_child_result, make_child_run_id
from redstart.ports.model.prices import price

_MONEY = re.compile(r"\$?\s*(\d+(?:\.\d+)?)\s*(?:\$|usd|dollars?)?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(m|min|mins|minutes?|h|hours?)", re.IGNORECASE)
_FLAGS = "set a limit with --max-usd or --max-minutes, or run without one: --no-limit"


class ImproveRequest(NamedTuple):
    """The user's options for improvements, besides the folder."""

    run_request: RunRequest
    goal: str = ""
    cycles: int = 0
    """How many improvements to try; 0 for no limit."""
    pause: float = 0.0
    command: tuple[str, ...] = ()
    """The command of the metric; empty for none."""
    direction: MetricDirection = MetricDirection.smaller


class ImproveLimits(NamedTuple):
    """The limits of all improvements together; None for no limit."""

    usd: float | None = None
    minutes: float | None = None


class CycleView(FrozenValue):
    """One tried improvement."""

    number: int
    run: str
    title: str
    kept: bool
    going: bool = False
    """Whether it is still under way."""
    reason: str = ""
    usd: float = 0.0
    calls: int = 0
    seconds: float = 0.0


async def create_improve_run(app: AppContext, path: Path, request: ImproveRequest) -> RunState:
    """Store a new run that improves the program in this folder, or creates it first if there is none.

    The folder is not changed. Raises `ConfigError` if there is neither a program nor a goal.
    """
    if len(request.goal) > GOAL_LIMIT:
        raise ConfigError(
            f"the goal has {len(request.goal):,} characters; the limit is {GOAL_LIMIT:,}", remedy="shorten the goal"
        )
    run_folder = take_folder(app, path, request.run_request)
    base, files = run_folder.spec.base, app.trees.list_files(run_folder.spec.base)
    if not files and not request.goal.strip():
        raise ConfigError(f"{path} is empty", remedy='describe the program: redstart improve --goal "a CSV sorter"')
    package = make_package_name(run_folder.path.name)
    draft = None if files else app.trees.write(base, create_skeleton(package, request.goal))
    metric = Metric(command=request.command, better=request.direction, start=base) if request.command else None
    spec = run_folder.spec.model_copy(
        update={
            "task": ImproveTask(cycles=request.cycles, pause=request.pause, metric=metric),
            "goal": request.goal,
            "packages": Packages(allow=app.settings.dependencies.by_language, approve=request.run_request.approve),
            "repo": run_folder.spec.repo if files else package,
        }
    )
    run_id = app.adapters.world.generate_id()
    state = RunState(run_id=run_id, spec=spec, base=base, draft=draft, now=Attempt(entry=Step.decide))
    await create_run(app, state, run_folder.path)
    return state


def build_run_limits(settings: Settings, cap: ImproveLimits) -> Limits:
    """Return the limits of all improvements together. Money and time are limited only if the user names a limit.

    If there is a money limit and the price of the model is unknown, the token limit of the settings applies too.
    """
    model_profile = load_profile(settings)
    name = settings.models.strong
    is_unpriced = cap.usd is not None and price(name, 1, 1, rates=model_profile.rates) is None
    tokens = settings.limits.tokens if is_unpriced else None
    return settings.limits.model_copy(update={"usd": cap.usd, "minutes": cap.minutes, "tokens": tokens})


def read_cap(answer: str) -> ImproveLimits:
    """Parse a person's answer about limits: `5` or `$5`, `90 min`, `2 h`, or `none`. Raises `ConfigError`."""
    normalized = answer.strip().lower()
    if normalized in ("none", "no", "no limit", "no cap"):
        return ImproveLimits()
    if match := _TIME.fullmatch(normalized):
        return ImproveLimits(minutes=float(match[1]) * (60 if match[2].startswith("h") else 1))
    if match := _MONEY.fullmatch(normalized):
        return ImproveLimits(usd=float(match[1]))
    raise ConfigError(f"{answer!r} is neither an amount of money nor a time", remedy=_FLAGS)


def create_missing_limit_error() -> ConfigError:
    """Return the error for a run without a limit and without a person to ask for one."""
    return ConfigError("improve runs until it is stopped, and no limit is set", remedy=_FLAGS)


async def list_cycles(app: AppContext, state: RunState) -> list[CycleView]:
    """List every tried improvement in order, with its outcome."""
    views: list[CycleView] = []
    for number in range(1, state.work.begun + 1):
        run_id = make_child_run_id(state.run_id, number)
        if not await app.adapters.store.list_runs(prefix=run_id, limit=1):
            break  # the improvement was decided on, but has not started yet
        child = await app.adapters.store.load(run_id)
        child_result = get_child_result(child)
        is_running = child.status is not Status.finished and state.status is not Status.finished
        views.append(
            CycleView(
                number=number,
                run=run_id,
                title=child_result.about if child_result else (child.now.plan.summary if child.now.plan else ""),
                kept=child.spec.errand == state.work.chosen if state.work.chosen else child.result is Result.verified,
                going=is_running,
                reason=child.reason if child_result or is_running else "stopped: another one was verified first",
                usd=child.spend.usd,
                calls=child.spend.calls,
                seconds=child.spend.seconds,
            )
        )
    return views
