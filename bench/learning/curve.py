"""The results of the arms: shares over time, and paired differences with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from _figures import Figure, expect_at_least, expect_equal, report_value
from learning.arms import Arm
from redstart.evals.intervals import (
    Estimate,
    bootstrap_difference,
    bootstrap_statistic,
    compute_mcnemar_p,
    estimate_share,
)
from redstart.evals.outcome import EndPoint, RunOutcome

QUARTERS = 4
ALL_ATTEMPTS_AND_ONE = 4
"""The attempts that an unsolved run counts as: one more than it may have."""

Rows = Mapping[Arm, Sequence[RunOutcome]]


class Seen(NamedTuple):
    """The lessons and cards of earlier runs that a run was shown."""

    lessons: int
    cards: int
    has_fact: bool
    """Whether they held its own family's key fact; never true with a model, which uses its own words."""


def pair_rows(rows: Rows) -> dict[Arm, list[RunOutcome]]:
    """Return the rows of tasks that every arm has finished, in order; a task that broke in one arm is left out."""
    finished = {arm: {row.key: row for row in rows[arm] if row.place is not EndPoint.broken} for arm in Arm}
    keys = [row.key for row in rows[Arm.off] if all(row.key in finished[arm] for arm in Arm)]
    return {arm: [finished[arm][key] for key in keys] for arm in Arm}


def estimate_solved(rows: Sequence[RunOutcome]) -> Estimate:
    return estimate_share(sum(row.solved for row in rows), len(rows))


def estimate_quarters(rows: Sequence[RunOutcome]) -> list[Estimate]:
    """Estimate the solved share in each quarter of the order. Raises `ValueError` if a quarter would be empty."""
    cuts = [len(rows) * number // QUARTERS for number in range(QUARTERS + 1)]
    return [estimate_solved(rows[start:stop]) for start, stop in pairwise(cuts)]


def take_last_half(rows: Sequence[RunOutcome]) -> Sequence[RunOutcome]:
    return rows[len(rows) // 2 :]


def estimate_gap(a: Sequence[RunOutcome], b: Sequence[RunOutcome], count: Callable[[RunOutcome], float]) -> Estimate:
    """Estimate B's mean minus A's, over the same tasks."""
    return bootstrap_difference([count(row) for row in a], [count(row) for row in b])


def is_solved(row: RunOutcome) -> float:
    return float(row.solved)


def count_attempts(row: RunOutcome) -> float:
    return float(row.attempts if row.solved else ALL_ATTEMPTS_AND_ONE)


def estimate_tokens_ratio(a: Sequence[RunOutcome], b: Sequence[RunOutcome]) -> Estimate:
    """Estimate B's tokens as a share of A's; tasks are resampled in pairs."""

    def compute_ratio(pairs: Sequence[tuple[int, int]]) -> float:
        return sum(tokens_b for _, tokens_b in pairs) / sum(pair for pair, _ in pairs)

    return bootstrap_statistic([(item.tokens, other.tokens) for item, other in zip(a, b, strict=True)], compute_ratio)


def sign_test(a: Sequence[RunOutcome], b: Sequence[RunOutcome]) -> float:
    """Return the p-value of McNemar's exact test."""
    pairs = list(zip(a, b, strict=True))
    only_a = sum(pair.solved and not other.solved for pair, other in pairs)
    only_b = sum(other.solved and not pair.solved for pair, other in pairs)
    return compute_mcnemar_p(only_a, only_b)


def build_figures(rows: Rows, minimum: int, contexts: Mapping[Arm, Sequence[Seen]], *, has_aims: bool) -> list[Figure]:
    """Make the figures of the tasks that every arm has finished. A model has only the aims of the bench itself:
    nobody knows what the model could do."""
    paired_rows = pair_rows(rows)
    off, on, placebo = (paired_rows[arm] for arm in (Arm.off, Arm.on, Arm.placebo))
    broken_count = sum(row.place is EndPoint.broken for arm in Arm for row in rows[arm])
    results = [
        expect_at_least("tasks", len(off), minimum),
        expect_equal("broken", broken_count, 0),
        expect_equal("false_greens", _count_false_greens(rows), 0),
    ]
    if not off:
        return results
    for arm in Arm:
        results.append(_report_estimate(f"solved_{arm.value}", estimate_solved(paired_rows[arm])))
    for arm in Arm:
        results += [
            _report_estimate(f"solved_{arm.value}_quarter_{number}", item)
            for number, item in _number_quarters(paired_rows[arm])
        ]
    differences = {
        "on_minus_off": estimate_gap(off, on, is_solved),
        "on_minus_off_last_half": estimate_gap(take_last_half(off), take_last_half(on), is_solved),
        "placebo_minus_off": estimate_gap(off, placebo, is_solved),
        "on_minus_placebo": estimate_gap(placebo, on, is_solved),
    }
    results += [_build_difference(name, difference, has_aim=has_aims) for name, difference in differences.items()]
    results.append(Figure("mcnemar_on_off", round(sign_test(off, on), 6)))
    for arm in Arm:
        results.append(report_value(f"attempts_{arm.value}", fmean(map(count_attempts, paired_rows[arm]))))
    results.append(_report_estimate("attempts_on_minus_off", estimate_gap(off, on, count_attempts)))
    for arm in Arm:
        results.append(report_value(f"tokens_{arm.value}", round(fmean(row.tokens for row in paired_rows[arm]))))
    results.append(_report_estimate("tokens_ratio_on_off", estimate_tokens_ratio(off, on)))
    results.append(_report_estimate("tokens_ratio_placebo_off", estimate_tokens_ratio(off, placebo)))
    return [*results, *_build_context_figures(contexts, has_aims=has_aims)]


def _build_context_figures(contexts: Mapping[Arm, Sequence[Seen]], *, has_aims: bool) -> list[Figure]:
    """Make figures of what the runs of an arm were shown, per run; the placebo must show as much as `on`."""
    results: list[Figure] = []
    for arm, arm_contexts in contexts.items():
        lessons, cards = (fmean(column) for column in zip(*((item[:2]) for item in arm_contexts), strict=True))
        results += [
            report_value(f"lessons_shown_{arm.value}", lessons),
            report_value(f"cards_shown_{arm.value}", cards),
        ]
        name, share = f"told_the_fact_{arm.value}", fmean(item.has_fact for item in arm_contexts)
        if has_aims:
            results.append(report_value(name, share) if arm is Arm.on else expect_equal(name, share, 0))
    on, placebo = ([item[:2] for item in contexts.get(arm, ())] for arm in (Arm.on, Arm.placebo))
    unlike = sum(item != other for item, other in zip(on, placebo, strict=False))
    return [*results, expect_equal("placebo_unlike_on", unlike, 0)]


def _number_quarters(rows: Sequence[RunOutcome]) -> list[tuple[int, Estimate]]:
    return list(enumerate(estimate_quarters(rows), 1)) if len(rows) >= QUARTERS else []


def _count_false_greens(rows: Rows) -> int:
    return sum(row.place is EndPoint.false_green for arm in Arm for row in rows[arm])


def _build_difference(name: str, estimate: Estimate, *, has_aim: bool) -> Figure:
    if has_aim and name == "on_minus_off":
        return Figure(name, round_estimate(estimate), "> 0, interval above 0", estimate.low > 0)
    if has_aim and name == "placebo_minus_off":
        return Figure(name, round_estimate(estimate), "interval holds 0", estimate.low <= 0 <= estimate.high)
    return _report_estimate(name, estimate)


def _report_estimate(name: str, estimate: Estimate) -> Figure:
    return Figure(name, round_estimate(estimate))


def round_estimate(estimate: Estimate) -> list[float]:
    """Return the value and both ends of its interval, rounded."""
    return [round(estimate.value, 4), round(estimate.low, 4), round(estimate.high, 4)]
