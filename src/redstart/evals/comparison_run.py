"""The use case behind `redstart models compare`, without its display."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from redstart.app.settings import Settings
from redstart.app.wire import check_models, open_app
from redstart.core.errors import ConfigError
from redstart.core.run import Level, Limits, Spend
from redstart.evals.app import (
    PREFIX,
    EvaluationRequest,
    build_plan,
    make_safe_name,
    open_evaluation,
    open_lab,
    open_trials,
)
from redstart.evals.history import (
    HistorySearch,
    OnChecked,
    collect_bugs,
    get_tasks_file,
    keep_collected,
    name_comparison,
    read_collected,
)
from redstart.evals.mine import find_candidates
from redstart.evals.model_comparison import (
    ComparisonFrame,
    ComparisonLimits,
    ModelComparison,
    PlayReport,
    build_comparison,
    play_pairs,
    sum_spent,
)
from redstart.evals.outcome import RunOutcome, find_plan
from redstart.evals.runner import Evaluation
from redstart.evals.task import Task
from redstart.ports.model.prices import price
from redstart.ports.model.tiers import get_profile
from redstart.toolkit.base.git import GitFailed, run_git
from redstart.toolkit.suites.detection.environment import find_interpreter

_SAMPLE = 1_000
"""The number of tokens to price."""
SEARCH_SHARE = 0.5
"""The share of the minutes that the search for bugs may take."""


class ComparisonRequest(NamedTuple):
    """The options of a comparison."""

    repo: Path
    models: tuple[Settings, Settings]
    """The settings with each of the models."""
    history: int
    limits: ComparisonLimits
    name: str = ""
    """Empty for a name made from the repo."""
    python: str = ""

    @property
    def model_names(self) -> tuple[str, str]:
        a, b = (settings.models.strong for settings in self.models)
        return a, b

    @property
    def search_seconds(self) -> float:
        """The time limit of the search for bugs."""
        return SEARCH_SHARE * 60 * self.limits.minutes

    @property
    def full_name(self) -> str:
        """The same in every directory of the repo."""
        return make_safe_name(self.name) or name_comparison(_find_root(self.repo), self.history)


class CollectedBugs(NamedTuple):
    tasks: list[Task]
    seconds: float = 0.0
    """What the search took now."""


def refuse_unusable_models(request: ComparisonRequest) -> None:
    """Raise `ConfigError` if both models are the same, or if one has no usable name or no key. No model is asked."""
    a, b = request.model_names
    if a == b:
        raise ConfigError(f"{a} cannot be compared with itself", remedy="name two models; see: redstart models")
    for settings in request.models:
        if not settings.models.strong.startswith(PREFIX):
            check_models(settings)


def read_bugs(request: ComparisonRequest) -> CollectedBugs | None:
    """Return the bugs of the comparison's first start. None if it was never started."""
    tasks = read_collected(get_tasks_file(request.models[0], request.full_name))
    return CollectedBugs(tasks) if tasks else None


def search_bugs(request: ComparisonRequest, on_checked: OnChecked) -> CollectedBugs:
    """Search the history for the bugs of the comparison, and store them.

    Raises `ConfigError` if the history has no usable bug.
    """
    settings = request.models[0]
    repo = _find_root(request.repo)
    search = HistorySearch(repo, request.history, request.search_seconds, request.python or _find_python(repo))
    with open_app(settings) as context:
        app, clock = context.with_sandbox(), context.adapters.world.monotonic
        began = clock()
        tasks = asyncio.run(collect_bugs(app, search, find_candidates(repo), on_checked))
        took = clock() - began
    if not tasks:
        raise ConfigError(
            f"the history of {repo.name} holds no usable bug: no commit changes code and tests such that tests fail "
            "before it and pass after it",
            remedy="see why with: redstart eval mine . --hide-tests --out tasks.jsonl",
        )
    keep_collected(tasks, get_tasks_file(settings, request.full_name))
    return CollectedBugs(tasks, took)


def _find_root(repo: Path) -> Path:
    try:
        return Path(run_git("rev-parse", "--show-toplevel", cwd=repo).decode().strip())
    except (GitFailed, OSError) as error:
        raise ConfigError(f"{repo} is not in a git repo", remedy="give the directory of a git repo") from error


def _find_python(repo: Path) -> str:
    """Return the interpreter that the repo's tests run with; empty to detect it for each task."""
    try:
        return find_interpreter(repo, environ=os.environ)[0].executable
    except ConfigError:
        return ""


def _has_known_price(settings: Settings) -> bool:
    name = settings.models.strong
    return price(name, _SAMPLE, _SAMPLE, rates=get_profile(name, settings.models.profiles).rates) is not None


class OpenComparison(NamedTuple):
    """A comparison that can be played."""

    frame: ComparisonFrame
    bugs: CollectedBugs
    evaluations: tuple[Evaluation, Evaluation]

    @property
    def remaining(self) -> int:
        """The number of runs that are still to do."""
        return sum(len(item.list_remaining()) for item in self.evaluations)

    def measure_spent(self) -> Spend:
        """Measure what all earlier starts spent, and the search of this one."""
        return asyncio.run(sum_spent(self.evaluations, self.bugs.seconds))

    def play(self) -> ModelComparison:
        """Do the remaining runs within the limits."""
        return asyncio.run(self._play())

    async def _play(self) -> ModelComparison:
        report = await play_pairs(self.evaluations, self.frame.limits, self.bugs.seconds)
        return await self._build(report)

    async def _build(self, report: PlayReport) -> ModelComparison:
        rows_a, rows_b = (item.results.list_rows() for item in self.evaluations)
        spent = await sum_spent(self.evaluations, self.bugs.seconds)
        return build_comparison(self.frame, self.bugs.tasks, (rows_a, rows_b), report, spent)


class RunConditions(NamedTuple):
    """What is the same for every run of a comparison."""

    limits: Limits
    verify: Level


def find_run_conditions(settings: Settings, limits: ComparisonLimits, names: Sequence[str]) -> RunConditions:
    """Return the conditions of the first start, so that a later start with other limits continues it."""
    with open_trials(settings) as trials:
        plan = next(filter(None, (find_plan(trials, name) for name in names)), None)
    if plan is not None:
        return RunConditions(plan.limits, plan.verify)
    return RunConditions(limits.fit(settings.limits), settings.verify)


@contextmanager
def open_comparison(
    request: ComparisonRequest, bugs: CollectedBugs, on_outcome: Callable[[str, RunOutcome], None]
) -> Generator[OpenComparison]:
    """Begin or continue an evaluation per model. Raises as `open_lab` and `Results.open` do."""
    settings = request.models[0]
    file = get_tasks_file(settings, request.full_name)
    names = [make_safe_name(f"{request.full_name}-{model}") for model in request.model_names]
    run_limits, verify = find_run_conditions(settings, request.limits, names)
    with ExitStack() as stack:
        evaluations: list[Evaluation] = []
        for model_settings, model, name in zip(request.models, request.model_names, names, strict=True):
            options = EvaluationRequest(source=str(file), name=name, limits=run_limits, verify=verify)
            plan = build_plan(options, bugs.tasks, model)
            lab = stack.enter_context(open_lab(model_settings, plan.name))
            evaluations.append(
                open_evaluation(
                    lab.app.with_sandbox(),
                    lab.trials,
                    plan,
                    bugs.tasks,
                    lambda row, model=model: on_outcome(model, row),
                )
            )
        frame = ComparisonFrame(
            request.full_name,
            _find_root(request.repo).name,
            request.model_names,
            request.limits,
            run_limits,
            tuple(settings.models.strong for settings in request.models if not _has_known_price(settings)),
        )
        yield OpenComparison(frame, bugs, (evaluations[0], evaluations[1]))
