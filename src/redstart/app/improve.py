"""The use case of `redstart improve`: start a run, and report its cycles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from redstart.app.runs import RunRequest, create_run, take_folder
from redstart.app.settings import Settings
from redstart.app.skeleton import package_name, skeleton
from redstart.app.wire import AppContext, profile
from redstart.core.errors import ConfigError
from redstart.core.noun import FrozenValue
from redstart.core.packages import Packages
from redstart.core.run import GOAL_LIMIT, Attempt, Limits, Result, RunState, Status, Step
from redstart.core.tasks import ImproveTask
from redstart.core.wishes import Metric, MetricDirection
from redstart.flow.errands import ended, errand_id
from redstart.ports.model.prices import price

_MONEY = re.compile(r"\$?\s*(\d+(?:\.\d+)?)\s*(?:\$|usd|dollars?)?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(m|min|mins|minutes?|h|hours?)", re.IGNORECASE)
_FLAGS = "set a limit with --max-usd or --max-minutes, or run without one: --no-limit"


class ImproveRequest(NamedTuple):
    """The user's options for improvements, besides the folder."""

    asked: RunRequest
    goal: str = ""
    cycles: int = 0
    """How many improvements to try; 0 for no limit."""
    pause: float = 0.0
    command: tuple[str, ...] = ()
    """The command of the metric; empty for none."""
    better: MetricDirection = MetricDirection.smaller


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


async def begin_improve(house: AppContext, path: Path, wanted: ImproveRequest) -> RunState:
    """Store a new run that improves the program in this folder, or creates it first if there is none.

    The folder is not changed. Raises `ConfigError` if there is neither a program nor a goal.
    """
    if len(wanted.goal) > GOAL_LIMIT:
        raise ConfigError(
            f"the goal has {len(wanted.goal):,} characters; the limit is {GOAL_LIMIT:,}", remedy="shorten the goal"
        )
    taken = take_folder(house, path, wanted.asked)
    base, files = taken.spec.base, house.trees.files(taken.spec.base)
    if not files and not wanted.goal.strip():
        raise ConfigError(f"{path} is empty", remedy='describe the program: redstart improve --goal "a CSV sorter"')
    package = package_name(taken.path.name)
    draft = None if files else house.trees.write(base, skeleton(package, wanted.goal))
    metric = Metric(command=wanted.command, better=wanted.better, start=base) if wanted.command else None
    spec = taken.spec.model_copy(
        update={
            "task": ImproveTask(cycles=wanted.cycles, pause=wanted.pause, metric=metric),
            "goal": wanted.goal,
            "packages": Packages(allow=house.settings.dependencies.by_language, approve=wanted.asked.approve),
            "repo": taken.spec.repo if files else package,
        }
    )
    run_id = house.adapters.world.fresh_id()
    state = RunState(run_id=run_id, spec=spec, base=base, draft=draft, now=Attempt(entry=Step.decide))
    await create_run(house, state, taken.path)
    return state


def capped(settings: Settings, cap: ImproveLimits) -> Limits:
    """Return the limits of all improvements together: of money and time only those that the user named.

    If there is a limit of money and the price of the model is unknown, the settings' token limit applies as well.
    """
    known = profile(settings)
    name = settings.models.strong
    unpriced = cap.usd is not None and price(name, 1, 1, rates=known.rates) is None
    tokens = settings.limits.tokens if unpriced else None
    return settings.limits.model_copy(update={"usd": cap.usd, "minutes": cap.minutes, "tokens": tokens})


def read_cap(said: str) -> ImproveLimits:
    """Parse a person's answer about limits: `5` or `$5`, `90 min`, `2 h`, or `none`. Raises `ConfigError`."""
    words = said.strip().lower()
    if words in ("none", "no", "no limit", "no cap"):
        return ImproveLimits()
    if found := _TIME.fullmatch(words):
        return ImproveLimits(minutes=float(found[1]) * (60 if found[2].startswith("h") else 1))
    if found := _MONEY.fullmatch(words):
        return ImproveLimits(usd=float(found[1]))
    raise ConfigError(f"{said!r} is neither an amount of money nor a time", remedy=_FLAGS)


def no_cap_said() -> ConfigError:
    """Return the error for a run without a limit and without a person to ask for one."""
    return ConfigError("improve runs until it is stopped, and no limit is set", remedy=_FLAGS)


async def cycles(house: AppContext, state: RunState) -> list[CycleView]:
    """List every tried improvement in order, with its outcome."""
    found: list[CycleView] = []
    for number in range(1, state.work.begun + 1):
        run_id = errand_id(state.run_id, number)
        if not await house.adapters.store.runs(prefix=run_id, limit=1):
            break  # the improvement was decided on, but has not started yet
        child = await house.adapters.store.load(run_id)
        told, going = ended(child), child.status is not Status.finished
        found.append(
            CycleView(
                number=number,
                run=run_id,
                title=told.about if told else (child.now.plan.summary if child.now.plan else ""),
                kept=child.result is Result.verified,
                going=going,
                reason=child.reason,
                usd=child.spend.usd,
                calls=child.spend.calls,
                seconds=child.spend.seconds,
            )
        )
    return found
