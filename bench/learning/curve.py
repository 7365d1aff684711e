"""The results of the arms: shares over time, and paired differences with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from _figures import Figure, at_least, exactly, told
from learning.arms import Arm
from redstart.evals.intervals import Estimate, bootstrap_of, mcnemar, paired_bootstrap, wilson
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


def paired(rows: Rows) -> dict[Arm, list[RunOutcome]]:
    """Return the rows of tasks that every arm has finished, in order; a task that broke in one arm is left out."""
    good = {arm: {row.key: row for row in rows[arm] if row.place is not EndPoint.broken} for arm in Arm}
    keys = [row.key for row in rows[Arm.off] if all(row.key in good[arm] for arm in Arm)]
    return {arm: [good[arm][key] for key in keys] for arm in Arm}


def solved(rows: Sequence[RunOutcome]) -> Estimate:
    return wilson(sum(row.solved for row in rows), len(rows))


def quarters(rows: Sequence[RunOutcome]) -> list[Estimate]:
    """Estimate the solved share in each quarter of the order. Raises `ValueError` if a quarter would be empty."""
    cuts = [len(rows) * number // QUARTERS for number in range(QUARTERS + 1)]
    return [solved(rows[start:stop]) for start, stop in pairwise(cuts)]


def last_half(rows: Sequence[RunOutcome]) -> Sequence[RunOutcome]:
    return rows[len(rows) // 2 :]


def gap(a: Sequence[RunOutcome], b: Sequence[RunOutcome], count: Callable[[RunOutcome], float]) -> Estimate:
    """Estimate B's mean minus A's, over the same tasks."""
    return paired_bootstrap([count(row) for row in a], [count(row) for row in b])


def is_solved(row: RunOutcome) -> float:
    return float(row.solved)


def to_green(row: RunOutcome) -> float:
    return float(row.attempts if row.solved else ALL_ATTEMPTS_AND_ONE)


def tokens_ratio(a: Sequence[RunOutcome], b: Sequence[RunOutcome]) -> Estimate:
    """Estimate B's tokens as a share of A's; tasks are resampled in pairs."""

    def ratio(pairs: Sequence[tuple[int, int]]) -> float:
        return sum(two for _, two in pairs) / sum(pair for pair, _ in pairs)

    return bootstrap_of([(item.tokens, two.tokens) for item, two in zip(a, b, strict=True)], ratio)


def sign_test(a: Sequence[RunOutcome], b: Sequence[RunOutcome]) -> float:
    """Return the p-value of McNemar's exact test."""
    pairs = list(zip(a, b, strict=True))
    only_a = sum(pair.solved and not two.solved for pair, two in pairs)
    only_b = sum(two.solved and not pair.solved for pair, two in pairs)
    return mcnemar(only_a, only_b)


def figures(rows: Rows, least: int, seen: Mapping[Arm, Sequence[Seen]], *, has_aims: bool) -> list[Figure]:
    """Make the figures of the tasks that every arm has finished. A model has only the aims of the bench itself:
    nobody knows what the model could do."""
    every = paired(rows)
    off, on, placebo = (every[arm] for arm in (Arm.off, Arm.on, Arm.placebo))
    broken = sum(row.place is EndPoint.broken for arm in Arm for row in rows[arm])
    found = [
        at_least("tasks", len(off), least),
        exactly("broken", broken, 0),
        exactly("false_greens", _false_greens(rows), 0),
    ]
    if not off:
        return found
    for arm in Arm:
        found.append(_told(f"solved_{arm.value}", solved(every[arm])))
    for arm in Arm:
        found += [_told(f"solved_{arm.value}_quarter_{number}", item) for number, item in _numbered(every[arm])]
    differences = {
        "on_minus_off": gap(off, on, is_solved),
        "on_minus_off_last_half": gap(last_half(off), last_half(on), is_solved),
        "placebo_minus_off": gap(off, placebo, is_solved),
        "on_minus_placebo": gap(placebo, on, is_solved),
    }
    found += [_difference(name, difference, has_aim=has_aims) for name, difference in differences.items()]
    found.append(Figure("mcnemar_on_off", round(sign_test(off, on), 6)))
    for arm in Arm:
        found.append(told(f"attempts_{arm.value}", fmean(map(to_green, every[arm]))))
    found.append(_told("attempts_on_minus_off", gap(off, on, to_green)))
    for arm in Arm:
        found.append(told(f"tokens_{arm.value}", round(fmean(row.tokens for row in every[arm]))))
    found.append(_told("tokens_ratio_on_off", tokens_ratio(off, on)))
    found.append(_told("tokens_ratio_placebo_off", tokens_ratio(off, placebo)))
    return [*found, *_shown_to(seen, has_aims=has_aims)]


def _shown_to(seen: Mapping[Arm, Sequence[Seen]], *, has_aims: bool) -> list[Figure]:
    """Make figures of what the runs of an arm were shown, per run; the placebo must show as much as `on`."""
    found: list[Figure] = []
    for arm, of_arm in seen.items():
        lessons, cards = (fmean(column) for column in zip(*((item[:2]) for item in of_arm), strict=True))
        found += [told(f"lessons_shown_{arm.value}", lessons), told(f"cards_shown_{arm.value}", cards)]
        name, share = f"told_the_fact_{arm.value}", fmean(item.has_fact for item in of_arm)
        if has_aims:
            found.append(told(name, share) if arm is Arm.on else exactly(name, share, 0))
    on, placebo = ([item[:2] for item in seen.get(arm, ())] for arm in (Arm.on, Arm.placebo))
    unlike = sum(item != two for item, two in zip(on, placebo, strict=False))
    return [*found, exactly("placebo_unlike_on", unlike, 0)]


def _numbered(rows: Sequence[RunOutcome]) -> list[tuple[int, Estimate]]:
    return list(enumerate(quarters(rows), 1)) if len(rows) >= QUARTERS else []


def _false_greens(rows: Rows) -> int:
    return sum(row.place is EndPoint.false_green for arm in Arm for row in rows[arm])


def _difference(name: str, found: Estimate, *, has_aim: bool) -> Figure:
    if has_aim and name == "on_minus_off":
        return Figure(name, shown(found), "> 0, interval above 0", found.low > 0)
    if has_aim and name == "placebo_minus_off":
        return Figure(name, shown(found), "interval holds 0", found.low <= 0 <= found.high)
    return _told(name, found)


def _told(name: str, found: Estimate) -> Figure:
    return Figure(name, shown(found))


def shown(found: Estimate) -> list[float]:
    """Return the value and both ends of its interval, rounded."""
    return [round(found.value, 4), round(found.low, 4), round(found.high, 4)]
