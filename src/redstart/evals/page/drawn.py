"""What the page of an evaluation draws, computed from its rows; the figures themselves are those of `metrics`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from redstart.evals.metrics import COSTS
from redstart.evals.outcome import Key, Outcome, Place
from redstart.evals.results import Plan


class Point(NamedTuple):
    """A task: what its runs cost on average, and the share of them that solved it."""

    cost: float
    solved: float
    task: str


class Reached(NamedTuple):
    """What share is solved by runs that cost no more than this."""

    cost: float
    solved: float


class CostPlot(NamedTuple):
    name: str
    points: list[Point]
    """By cost; their means are the figures of this cost and of pass@1."""
    curve: list[Reached]
    """Rises with the cost; its last share is pass@1."""


class TaskRow(NamedTuple):
    """A task's line in the grid: its runs in the order of the plan, None for one that is not done."""

    task: str
    cells: list[Outcome | None]

    @property
    def solved(self) -> int:
        return sum(cell is not None and cell.solved for cell in self.cells)


def cost_plots(rows: Sequence[Outcome]) -> list[CostPlot]:
    """One for each thing that the runs cost any of; what broke is in none, as in the figures."""
    by_task: dict[str, list[Outcome]] = defaultdict(list)
    for row in rows:
        if row.place is not Place.broken:
            by_task[row.key.task].append(row)
    counted = {name: count for name, count in COSTS.items() if any(count(row) for row in rows)}
    return [_plot(name, count, by_task) for name, count in counted.items()] if by_task else []


def _plot(name: str, count: Callable[[Outcome], float], by_task: dict[str, list[Outcome]]) -> CostPlot:
    points = [
        Point(fmean(map(count, group)), fmean(float(row.solved) for row in group), task)
        for task, group in by_task.items()
    ]
    # A task counts once, however many runs it has; so the curve ends where pass@1 is.
    weighed = sorted(
        (count(row), row.solved / (len(group) * len(by_task))) for group in by_task.values() for row in group
    )
    curve = [Reached(0.0, 0.0)]
    for cost, weight in weighed:
        total = curve[-1].solved + weight
        if curve[-1].cost == cost:
            curve[-1] = Reached(cost, total)
        else:
            curve.append(Reached(cost, total))
    return CostPlot(name, sorted(points), curve)


def grid(plan: Plan, rows: Sequence[Outcome]) -> list[TaskRow]:
    """Every task that has a row, those with the fewest solved runs first."""
    known = {row.key: row for row in rows}
    tasks = sorted({row.key.task for row in rows})
    found = [TaskRow(task, [known.get(key) for key in plan.keys([task])]) for task in tasks]
    return sorted(found, key=lambda one: (one.solved, one.task))


def rounds(plan: Plan) -> list[Key]:
    """The columns of the grid."""
    return plan.keys([""])
