"""Compute figures with confidence intervals, and test whether one arm is better than another."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from statistics import NormalDist, fmean
from typing import TypeVar

from redstart.core.frozen import FrozenValue

T = TypeVar("T")

LEVEL = 0.95
DRAWS = 2000


class Estimate(FrozenValue):
    """A figure, and the interval that covers the true value at the stated confidence level."""

    value: float
    low: float
    high: float
    count: int
    """The number of tasks, or cases, that it is computed over."""
    level: float = LEVEL

    @property
    def words(self) -> str:
        return f"{format_number(self.value)} [{format_number(self.low)}, {format_number(self.high)}]"


def format_number(number: float) -> str:
    """Format a number with three digits, or all digits before the point. Numbers from 100 never get an exponent."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def compute_quantile(level: float) -> float:
    """Return the standard deviations on each side that cover this share of a normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def estimate_share(successes: int, count: int, level: float = LEVEL) -> Estimate:
    """Estimate a share with Wilson's score interval, without continuity correction. Raises `ValueError` if invalid."""
    if not 0 <= successes <= count or count == 0:
        raise ValueError(f"{successes} of {count} is not a share")
    share, z = successes / count, compute_quantile(level)
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half_width = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    # At either end the bound is exactly 0 or 1; without this, rounding would shift it.
    low = 0.0 if successes == 0 else max(middle - half_width, 0.0)
    high = 1.0 if successes == count else min(middle + half_width, 1.0)
    return Estimate(value=share, low=low, high=high, count=count, level=level)


def resample(
    values: Sequence[T], statistic: Callable[[Sequence[T]], float], *, draws: int = DRAWS, seed: int = 0
) -> list[float]:
    """Return the sorted statistics of samples drawn with replacement. The same seed gives the same result."""
    chance = random.Random(seed)  # noqa: S311  (not used for secrets)
    return sorted(statistic(chance.choices(values, k=len(values))) for _ in range(draws))


def bootstrap(values: Sequence[float], *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Estimate the mean of the values with its percentile interval; see `bootstrap_statistic`."""
    return bootstrap_statistic(values, fmean, level=level, draws=draws, seed=seed)


def bootstrap_statistic(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """Estimate a statistic with its percentile interval. Combine related values (runs of one task) into one value.

    Raises `ValueError` if there are no values.
    """
    if not values:
        raise ValueError("there are no values")
    resampled = resample(values, statistic, draws=draws, seed=seed)
    low, high = (compute_percentile(resampled, share) for share in ((1 - level) / 2, (1 + level) / 2))
    return Estimate(value=statistic(values), low=low, high=high, count=len(values), level=level)


def compute_percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which this share of the sorted values lies, by linear interpolation."""
    place = share * (len(ordered) - 1)
    lower_index = math.floor(place)
    upper_index = min(lower_index + 1, len(ordered) - 1)
    return ordered[lower_index] + (place - lower_index) * (ordered[upper_index] - ordered[lower_index])


def pass_at(count: int, correct: int, draws: int) -> float:
    """Estimate, without bias, the chance that at least one of `draws` runs is right if `correct` of `count` are.

    It is one minus the share of all draws without replacement in which no run is right (Chen et al., 2021). Raises
    `ValueError` if more runs are drawn than there are.
    """
    if not 0 <= correct <= count or not 1 <= draws <= count:
        raise ValueError(f"{draws} cannot be drawn from {count} runs with {correct} right")
    return 1.0 - math.comb(count - correct, draws) / math.comb(count, draws)


ALPHA = 0.05
POWER = 0.8
_CLOSE = 1e-9
"""The difference that rounding may cause between two equal sums."""


class Comparison(FrozenValue):
    """The comparison of B with A, over the tasks that both ran."""

    tasks: int
    pairs: int
    """Runs that both did, of the same task with the same seed."""
    only_a: int
    """Pairs in which only A solved its task."""
    only_b: int
    both: int
    difference: Estimate | None = None
    """B's share of solved tasks minus A's, over tasks; None if there is no pair."""
    p: float = 1.0
    """The probability that two equal agents differ at least as much: exact, over tasks."""
    costs: dict[str, Estimate] = {}
    """B's mean minus A's, by kind of cost."""
    detectable: float | None = None
    """The smallest true difference that this many tasks show with a power of 80 %; None if even 1 is too small."""

    @property
    def words(self) -> str:
        """The conclusion, in a sentence."""
        if self.difference is None:
            return "no task was run by both"
        points = 100 * self.difference.value
        if self.p > ALPHA:
            undetectable = "any" if self.detectable is None else f"less than {100 * self.detectable:.0f} points"
            return (
                f"no difference is shown ({points:+.1f} points, p = {self.p:.3f}); {undetectable} would often be missed"
            )
        return f"B is {'better' if points > 0 else 'worse'} by {abs(points):.1f} points (p = {self.p:.3g})"


def compute_mcnemar_p(only_a: int, only_b: int) -> float:
    """Compute McNemar's exact two-sided test on discordant pairs: twice the binomial tail, at most 1."""
    count, smaller = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(count, number) for number in range(smaller + 1))
    return min(1.0, 2 * tail / 2**count)


def compute_paired_p(differences: Sequence[int]) -> float:
    """Compute the exact paired test for tasks with several runs: per task, how many more runs B solved than A.

    If the agents are equal, each difference is as likely with the other sign. The p-value is the share of all choices
    of signs whose sum is at least as far from 0 as the observed sum. With one run per task, this is McNemar's test.
    """
    sizes = [abs(difference) for difference in differences if difference]
    counts: Counter[int] = Counter({0: 1})
    for size in sizes:
        next_counts: Counter[int] = Counter()
        for total, count in counts.items():
            next_counts[total + size] += count
            next_counts[total - size] += count
        counts = next_counts
    observed = abs(sum(differences))
    return sum(count for total, count in counts.items() if abs(total) >= observed) / 2 ** len(sizes)


def bootstrap_difference(a: Sequence[float], b: Sequence[float], *, level: float = LEVEL, seed: int = 0) -> Estimate:
    """Estimate B's mean minus A's over the same tasks, resampled by task. Raises `ValueError` for unequal lengths."""
    return bootstrap([other - item for item, other in zip(a, b, strict=True)], level=level, seed=seed)


def compute_power(pairs: int, discordant: float, difference: float, alpha: float = ALPHA) -> float:
    """Compute the exact power of McNemar's test: the chance that it shows a difference in its true direction.

    `discordant` is the share of pairs that differ; `difference` is the share of B alone minus that of A alone. The
    number of discordant pairs is binomial, and so is the number of B alone among them. Raises `ValueError` for
    impossible shares.
    """
    _refuse_impossible(discordant, difference)
    share_in_favor = (discordant + abs(difference)) / (2 * discordant)
    total = 0.0
    for count in range(1, pairs + 1):
        limit = _find_max_opposing(count, alpha)
        if limit >= 0:
            tail = sum(_compute_binomial(count, number, 1 - share_in_favor) for number in range(limit + 1))
            total += _compute_binomial(pairs, count, discordant) * tail
    return total


def find_detectable_difference(
    pairs: int, discordant: float, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Find the smallest difference that this many pairs show with this power, if that share of pairs is discordant.

    A difference cannot be larger than `discordant`. None if even that would be missed too often.
    """
    if not pairs or discordant <= 0 or compute_power(pairs, discordant, discordant, alpha) < power:
        return None
    low, high = 0.0, discordant
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if compute_power(pairs, discordant, middle, alpha) >= power else (middle, high)
    return high


@cache
def _find_max_opposing(count: int, alpha: float) -> int:
    """Return how many discordant pairs may go the other way for the test to be significant; -1 if none may."""
    limit = -1
    while limit + 1 <= count // 2 and compute_mcnemar_p(limit + 1, count - limit - 1) <= alpha + _CLOSE:
        limit += 1
    return limit


def _compute_binomial(count: int, number: int, chance: float) -> float:
    if chance in (0.0, 1.0):
        return float(number == (count if chance else 0))
    log_coefficient = math.lgamma(count + 1) - math.lgamma(number + 1) - math.lgamma(count - number + 1)
    return math.exp(log_coefficient + number * math.log(chance) + (count - number) * math.log(1 - chance))


def _refuse_impossible(discordant: float, difference: float) -> None:
    if not 0 < abs(difference) <= discordant <= 1:
        raise ValueError(f"a difference of {difference} is impossible if {discordant} of the pairs are discordant")
