"""Compare two models on the same tasks: played in pairs, within limits on the whole comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.frozen import FrozenValue, clip, format_count
from redstart.core.run import Limits, Spend
from redstart.evals.intervals import ALPHA, LEVEL, Comparison, Estimate, bootstrap, compute_mcnemar_p, estimate_share
from redstart.evals.metrics import compare
from redstart.evals.outcome import EndPoint, RunKey, RunOutcome
from redstart.evals.runner import Evaluation
from redstart.evals.task import Task

VERSION = 1
SIDES = ("A", "B")
MOST_BROKEN = 3
"""After this many tasks in a row that broke, the comparison stops: the cause is not the tasks."""
FEWEST = next(count for count in range(1, 100) if compute_mcnemar_p(0, count) <= ALPHA)
"""The fewest bugs that can show a difference: with fewer, even all against none may be chance."""
_SUBJECT = 200
_CLOSE = 1e-9
"""The difference that rounding may cause between two equal sums."""


class ComparisonLimits(FrozenValue):
    """The limits of a whole comparison, over all of its starts."""

    usd: float
    minutes: float

    def fit(self, limits: Limits) -> Limits:
        """Return the limits of each run, lowered so that one task with both models fits into the comparison."""
        usd, minutes = self.usd / len(SIDES), self.minutes / len(SIDES)
        return limits.model_copy(
            update={
                "usd": usd if limits.usd is None else min(limits.usd, usd),
                "minutes": minutes if limits.minutes is None else min(limits.minutes, minutes),
            }
        )

    def find_shortage(self, spent: Spend, reserve: Spend) -> str:
        """Return the limit that leaves no room for the reserve: `usd` or `minutes`. Empty if it fits."""
        if spent.usd + reserve.usd > self.usd + _CLOSE:
            return "usd"
        return "minutes" if spent.seconds + reserve.seconds > 60 * self.minutes + _CLOSE else ""


class PlayReport(NamedTuple):
    """How far the tasks were played."""

    unplayed: dict[str, str] = {}
    """Tasks that were not played, or not with both models, and the limit that left no room for them."""
    stopped: str = ""
    """Why the comparison stopped before its end, if not for a limit."""


async def play_pairs(evaluations: Sequence[Evaluation], limits: ComparisonLimits, prior_seconds: float) -> PlayReport:
    """Play each task with every model before the next task begins.

    The most that a task may take is reserved before it begins: its runs have limits of their own. If a run breaks, the
    other models do not play its task. `prior_seconds` count towards the limit on minutes.
    """
    unplayed: dict[str, str] = {}
    remaining = [set(item.list_remaining()) for item in evaluations]
    broken_in_row = 0
    for task in evaluations[0].tasks:
        key = RunKey(task=task.id)
        players = [item for item, keys in zip(evaluations, remaining, strict=True) if key in keys]
        if not players:
            continue
        spends = [await item.load_spend() for item in evaluations]
        spent = _sum_spends([spend for item in spends for spend in item.values()], prior_seconds)
        reserve = _sum_spends(
            [
                _get_unspent(item.plan.limits, spend.get(key, Spend()))
                for item, spend in zip(evaluations, spends, strict=True)
                if item in players
            ]
        )
        if shortage := limits.find_shortage(spent, reserve):
            unplayed[task.id] = shortage
            continue
        trouble = ""
        for player in players:
            row = await player.play(key)
            if row.place is EndPoint.broken:
                trouble = f"{player.plan.model}: {row.trouble}"
                break
        broken_in_row = broken_in_row + 1 if trouble else 0
        if broken_in_row == MOST_BROKEN:
            return PlayReport(unplayed, trouble)
    return PlayReport(unplayed)


def _get_unspent(limits: Limits, spent: Spend) -> Spend:
    """Return what a run may still spend."""
    return Spend(
        usd=max((limits.usd or 0.0) - spent.usd, 0.0), seconds=max(60 * (limits.minutes or 0.0) - spent.seconds, 0.0)
    )


def _sum_spends(spends: Sequence[Spend], seconds: float = 0.0) -> Spend:
    return Spend(usd=sum(item.usd for item in spends), seconds=seconds + sum(item.seconds for item in spends))


async def sum_spent(evaluations: Sequence[Evaluation], prior_seconds: float = 0.0) -> Spend:
    """Sum what all runs have spent so far."""
    return _sum_spends([spend for item in evaluations for spend in (await item.load_spend()).values()], prior_seconds)


class ModelFigures(FrozenValue):
    """The figures of one model, over the bugs that both models played."""

    model: str
    solved: int = 0
    solved_share: Estimate | None = None
    usd: Estimate | None = None
    """Dollars per bug; None if a price is unknown."""
    minutes: Estimate | None = None
    """Minutes of work per bug, without grading."""
    unpriced: int = 0
    """Model calls of unknown price."""


class BugOutcome(FrozenValue):
    """How one model's run on one bug ended."""

    ended: EndPoint
    attempts: int
    usd: float
    unpriced: int
    """Model calls of unknown price, which `usd` does not include."""
    minutes: float
    run_id: str
    trouble: str = ""
    """What broke."""


class PlayedBug(FrozenValue):
    """One bug, with the outcome of each model; None if the model did not play it."""

    task: str
    subject: str
    """The first line of the message of the commit that fixed it."""
    a: BugOutcome | None = None
    b: BugOutcome | None = None


class ModelComparison(FrozenValue):
    """The result. `v` changes when a field is removed or changes its meaning."""

    v: int = VERSION
    name: str
    repo: str
    level: float = LEVEL
    """The confidence level of all intervals."""
    a: ModelFigures
    b: ModelFigures
    compared: int
    """Bugs that both models played. All figures are over these."""
    difference: Comparison
    better: str = ""
    """The model that solves more bugs; empty if the two cannot be told apart."""
    conclusions: tuple[str, ...]
    """What the figures show, in sentences about A and B."""
    bugs: tuple[PlayedBug, ...]
    unplayed: dict[str, str] = {}
    """Bugs that were not played with both models because a limit left no room: `usd` or `minutes`, by task."""
    stopped: str = ""
    """Why the comparison stopped before its end, if not for a limit."""
    limits: ComparisonLimits
    run_limits: Limits
    """The limits of each run."""
    spent_usd: float = 0.0
    """Dollars of all runs, with those that are in no other figure."""
    spent_minutes: float = 0.0

    @property
    def broken(self) -> tuple[str, ...]:
        """Why runs broke."""
        outcomes = (outcome for bug in self.bugs for outcome in (bug.a, bug.b))
        return tuple(item.trouble for item in outcomes if item is not None and item.ended is EndPoint.broken)


class ComparisonFrame(NamedTuple):
    """What a comparison is about, without its outcomes."""

    name: str
    repo: str
    models: tuple[str, str]
    limits: ComparisonLimits
    run_limits: Limits
    unpriced: tuple[str, ...] = ()
    """The models whose price is unknown."""


def build_comparison(
    frame: ComparisonFrame,
    tasks: Sequence[Task],
    outcomes: tuple[Sequence[RunOutcome], Sequence[RunOutcome]],
    report: PlayReport,
    spent: Spend,
) -> ModelComparison:
    """Compute all figures from the stored outcomes."""
    rows_a, rows_b = ({row.key.task: row for row in rows} for rows in outcomes)
    bugs = [
        PlayedBug(
            task=task.id,
            subject=get_subject(task),
            a=_build_bug_outcome(rows_a.get(task.id)),
            b=_build_bug_outcome(rows_b.get(task.id)),
        )
        for task in tasks
    ]
    valid_a, valid_b = (
        {name for name, row in rows.items() if row.place is not EndPoint.broken} for rows in (rows_a, rows_b)
    )
    compared = [task.id for task in tasks if task.id in valid_a & valid_b]
    compared_a, compared_b = ([rows[name] for name in compared] for rows in (rows_a, rows_b))
    difference = compare(compared_a, compared_b)
    figures = [
        _compute_figures(model, rows) for model, rows in zip(frame.models, (compared_a, compared_b), strict=True)
    ]
    return ModelComparison(
        name=frame.name,
        repo=frame.repo,
        a=figures[0],
        b=figures[1],
        compared=len(compared),
        difference=difference,
        better=_find_better(frame.models, difference),
        conclusions=tuple(conclude(difference, figures)),
        bugs=tuple(bugs),
        unplayed=report.unplayed,
        stopped=report.stopped,
        limits=frame.limits,
        run_limits=frame.run_limits,
        spent_usd=spent.usd,
        spent_minutes=spent.seconds / 60,
    )


def _build_bug_outcome(row: RunOutcome | None) -> BugOutcome | None:
    if row is None:
        return None
    return BugOutcome(
        ended=row.place,
        attempts=row.attempts,
        usd=row.usd,
        unpriced=row.unpriced,
        minutes=row.seconds / 60,
        run_id=row.run_id,
        trouble=row.trouble,
    )


def get_subject(task: Task) -> str:
    """Return the first line of the goal."""
    return clip(next(iter(task.goal.strip().splitlines()), ""), _SUBJECT)


def _compute_figures(model: str, rows: Sequence[RunOutcome]) -> ModelFigures:
    if not rows:
        return ModelFigures(model=model)
    solved, unpriced = sum(row.solved for row in rows), sum(row.unpriced for row in rows)
    return ModelFigures(
        model=model,
        solved=solved,
        solved_share=estimate_share(solved, len(rows)),
        usd=None if unpriced else bootstrap([row.usd for row in rows]),
        minutes=bootstrap([row.seconds / 60 for row in rows]),
        unpriced=unpriced,
    )


def _find_better(models: tuple[str, str], difference: Comparison) -> str:
    if difference.difference is None or difference.p > ALPHA:
        return ""
    return models[difference.difference.value > 0]


def conclude(difference: Comparison, figures: Sequence[ModelFigures]) -> list[str]:
    """Say what the figures show, and what they cannot show."""
    if difference.difference is None:
        return ["no bug was played with both models, so nothing can be said"]
    bugs = format_count(difference.tasks, "bug")
    if difference.tasks < FEWEST:
        return [
            f"{bugs} are too few to tell the two apart: with fewer than {FEWEST}, even all against none may be chance"
        ]
    return [_conclude_solved(difference, bugs), *_conclude_costs(difference, figures)]


def _conclude_solved(difference: Comparison, bugs: str) -> str:
    points = 100 * difference.difference.value if difference.difference else 0.0
    if difference.p <= ALPHA:
        better, worse = ("B", "A") if points > 0 else ("A", "B")
        return f"{better} solves more bugs than {worse}: {abs(points):.0f} points on {bugs} (p = {difference.p:.2g})"
    missed = (
        "any difference" if difference.detectable is None else f"less than {100 * difference.detectable:.0f} points"
    )
    return (
        f"the two cannot be told apart on {bugs}: B minus A is {points:+.0f} points, which may be chance "
        f"(p = {difference.p:.2g}); {missed} would often be missed"
    )


def _conclude_costs(difference: Comparison, figures: Sequence[ModelFigures]) -> list[str]:
    lines: list[str] = []
    if all(item.usd is not None for item in figures):
        lines += _conclude_cost(difference.costs["usd"], 1.0, "{} costs ${:.2g} less per bug than {}")
    return [
        *lines,
        *_conclude_cost(difference.costs["seconds"], 1 / 60, "{} takes {:.2g} minutes less per bug than {}"),
    ]


def _conclude_cost(gap: Estimate, unit: float, sentence: str) -> list[str]:
    """Say which model costs less, if the interval excludes equality."""
    if gap.low <= 0 <= gap.high:
        return []
    less, more = ("A", "B") if gap.value > 0 else ("B", "A")
    return [sentence.format(less, abs(gap.value) * unit, more)]
