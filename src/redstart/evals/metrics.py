"""Compute the figures of an evaluation, each with a confidence interval."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean

from redstart.core.frozen import FrozenValue
from redstart.evals.intervals import (
    Comparison,
    Estimate,
    bootstrap,
    bootstrap_difference,
    bootstrap_statistic,
    compute_paired_p,
    estimate_share,
    find_detectable_difference,
    pass_at,
)
from redstart.evals.outcome import NOT_APPLIED, EndPoint, RunOutcome

COSTS: dict[str, Callable[[RunOutcome], float]] = {
    "attempts": lambda row: row.attempts,
    "seconds": lambda row: row.seconds,
    "tokens": lambda row: row.tokens,
    "usd": lambda row: row.usd,
}


class EvaluationFigures(FrozenValue):
    """The figures of an evaluation. A figure without data is None."""

    tasks: int
    runs: int
    broken: int
    """Runs whose machinery failed. They are in no other figure."""
    pass_at_1: Estimate | None = None
    """The share of solved tasks. A task with several runs counts with their share of solved ones."""
    pass_at_k: dict[int, float] = {}
    """For every k up to the smallest number of runs of a task."""
    honest_green: Estimate | None = None
    """The share of the runs that reported green that the hidden tests confirm."""
    coverage: Estimate | None = None
    """The share of the runs with candidates in which the hidden tests confirm any candidate."""
    selection: Estimate | None = None
    """The share of these runs in which they confirm the chosen candidate."""
    dishonest_caught: int = 0
    attempts: Estimate | None = None
    seconds: Estimate | None = None
    seconds_to_green: Estimate | None = None
    tokens: Estimate | None = None
    usd: Estimate | None = None
    unpriced: int = 0
    """Model calls of unknown price, which `usd` does not include."""
    apply_rate: Estimate | None = None
    """The share of all edits that applied."""
    rungs: dict[str, int] = {}
    recall: Estimate | None = None
    lines_shown: Estimate | None = None
    repeated: Estimate | None = None
    """The share of attempts after a run's first whose patch was tried before."""
    revisited: Estimate | None = None
    """The share of these attempts that ended in a failing state seen before."""
    places: dict[str, int] = {}


def compute_figures(rows: Sequence[RunOutcome]) -> EvaluationFigures:
    """Compute all figures. Runs of one task are grouped: intervals are over tasks, which are the sample."""
    valid_rows = [row for row in rows if row.place is not EndPoint.broken]
    by_task = _group_by_task(valid_rows)
    claimed_rows = [row for row in valid_rows if row.claimed]
    candidate_rows = [row for row in valid_rows if row.covered is not None]
    rungs = sum((Counter(row.rungs) for row in valid_rows), Counter[str]())
    return EvaluationFigures(
        tasks=len(by_task),
        runs=len(rows),
        broken=len(rows) - len(valid_rows),
        pass_at_1=_share(valid_rows, lambda row: row.solved),
        pass_at_k=_pass_at(by_task),
        honest_green=_share(claimed_rows, lambda row: row.solved),
        coverage=_share(candidate_rows, lambda row: bool(row.covered)),
        selection=_share(candidate_rows, lambda row: row.solved),
        dishonest_caught=sum(row.dishonest for row in valid_rows),
        attempts=_estimate_mean(valid_rows, COSTS["attempts"]),
        seconds=_estimate_mean(valid_rows, COSTS["seconds"]),
        seconds_to_green=_estimate_mean([row for row in valid_rows if row.solved and row.claimed], COSTS["seconds"]),
        tokens=_estimate_mean(valid_rows, COSTS["tokens"]),
        usd=_estimate_mean(valid_rows, COSTS["usd"]),
        unpriced=sum(row.unpriced for row in valid_rows),
        apply_rate=_estimate_ratio(valid_rows, _count_applied_edits, lambda row: sum(row.rungs.values())),
        rungs=dict(sorted(rungs.items())),
        recall=_estimate_mean([row for row in valid_rows if row.recall is not None], lambda row: row.recall or 0.0),
        lines_shown=_share(
            [row for row in valid_rows if row.lines_shown is not None], lambda row: bool(row.lines_shown)
        ),
        repeated=_estimate_ratio(valid_rows, lambda row: row.repeated, _count_later_attempts),
        revisited=_estimate_ratio(valid_rows, lambda row: row.revisited, _count_later_attempts),
        places=dict(sorted(Counter(row.place.value for row in rows).items())),
    )


def compare(a: Sequence[RunOutcome], b: Sequence[RunOutcome]) -> Comparison:
    """Compare B with A, paired by task, seed and run number. Broken runs and runs that only one did are left out."""
    rows_a = {row.key: row for row in a if row.place is not EndPoint.broken}
    rows_b = {row.key: row for row in b if row.place is not EndPoint.broken}
    keys = sorted(rows_a.keys() & rows_b.keys(), key=str)
    pairs = [(rows_a[key], rows_b[key]) for key in keys]
    by_task: dict[str, list[tuple[RunOutcome, RunOutcome]]] = defaultdict(list)
    for item, other in pairs:
        by_task[item.key.task].append((item, other))
    only_a = sum(item.solved and not other.solved for item, other in pairs)
    only_b = sum(other.solved and not item.solved for item, other in pairs)
    both = sum(item.solved and other.solved for item, other in pairs)
    if not pairs:
        return Comparison(tasks=0, pairs=0, only_a=0, only_b=0, both=0)
    groups = list(by_task.values())

    def compute_means(count: Callable[[RunOutcome], float], side: int) -> list[float]:
        return [fmean(count(pair[side]) for pair in group) for group in groups]

    def estimate_gap(count: Callable[[RunOutcome], float]) -> Estimate:
        return bootstrap_difference(compute_means(count, 0), compute_means(count, 1))

    return Comparison(
        tasks=len(groups),
        pairs=len(pairs),
        only_a=only_a,
        only_b=only_b,
        both=both,
        difference=estimate_gap(lambda row: row.solved),
        p=compute_paired_p([sum(int(other.solved) - int(item.solved) for item, other in group) for group in groups]),
        costs={name: estimate_gap(count) for name, count in COSTS.items()},
        detectable=find_detectable_difference(len(groups), max(only_a + only_b, 1) / len(pairs)),
    )


def _group_by_task(rows: Sequence[RunOutcome]) -> dict[str, list[RunOutcome]]:
    groups: dict[str, list[RunOutcome]] = defaultdict(list)
    for row in rows:
        groups[row.key.task].append(row)
    return groups


def _estimate_mean(rows: Sequence[RunOutcome], count: Callable[[RunOutcome], float]) -> Estimate | None:
    groups = _group_by_task(rows).values()
    return bootstrap([fmean(map(count, group)) for group in groups]) if groups else None


def _share(rows: Sequence[RunOutcome], predicate: Callable[[RunOutcome], bool]) -> Estimate | None:
    """Use Wilson's interval if each task has one run. Else resample tasks, because runs of one task are alike."""
    groups = _group_by_task(rows).values()
    if not groups:
        return None
    if all(len(group) == 1 for group in groups):
        return estimate_share(sum(predicate(row) for row in rows), len(rows))
    return bootstrap([fmean(float(predicate(row)) for row in group) for group in groups])


def _estimate_ratio(
    rows: Sequence[RunOutcome], part: Callable[[RunOutcome], int], total: Callable[[RunOutcome], int]
) -> Estimate | None:
    """Estimate a ratio of sums over tasks, with an interval from resampled tasks."""
    sums = [(sum(map(part, group)), sum(map(total, group))) for group in _group_by_task(rows).values()]
    valid_sums = [item for item in sums if item[1]]
    return bootstrap_statistic(valid_sums, _divide_sums) if valid_sums else None


def _divide_sums(sums: Sequence[tuple[int, int]]) -> float:
    return sum(part for part, _ in sums) / sum(total for _, total in sums)


def _count_applied_edits(row: RunOutcome) -> int:
    return sum(count for rung, count in row.rungs.items() if rung != NOT_APPLIED)


def _count_later_attempts(row: RunOutcome) -> int:
    return max(row.attempts - 1, 0)


def _pass_at(by_task: dict[str, list[RunOutcome]]) -> dict[int, float]:
    fewest = min((len(group) for group in by_task.values()), default=0)
    return {
        draws: fmean(pass_at(len(group), sum(row.solved for row in group), draws) for group in by_task.values())
        for draws in range(1, fewest + 1)
    }
