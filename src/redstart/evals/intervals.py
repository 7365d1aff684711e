"""Estimates with intervals: Wilson's for a share, the percentile bootstrap for everything else."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean
from typing import TypeVar

from redstart.core.noun import Noun

T = TypeVar("T")

LEVEL = 0.95
DRAWS = 2000


class Estimate(Noun):
    """A figure, and the interval that covers the true one at the stated level."""

    value: float
    low: float
    high: float
    count: int
    """Of what it was taken over: tasks, or cases."""
    level: float = LEVEL

    @property
    def words(self) -> str:
        return f"{short(self.value)} [{short(self.low)}, {short(self.high)}]"


def short(number: float) -> str:
    """Three digits, or all before the point; never with a power of ten where people do not write one."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def quantile(level: float) -> float:
    """How many standard deviations on each side hold this share of a normal distribution."""
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(successes: int, count: int, level: float = LEVEL) -> Estimate:
    """A share with Wilson's score interval, not corrected for continuity. Raises `ValueError` where it is no share."""
    if not 0 <= successes <= count or count == 0:
        raise ValueError(f"{successes} of {count} is no share")
    share, z = successes / count, quantile(level)
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    # At either end the bound is the end itself, but for how numbers are rounded.
    low = 0.0 if successes == 0 else max(middle - half, 0.0)
    high = 1.0 if successes == count else min(middle + half, 1.0)
    return Estimate(value=share, low=low, high=high, count=count, level=level)


def resamples(
    values: Sequence[T], statistic: Callable[[Sequence[T]], float], *, draws: int = DRAWS, seed: int = 0
) -> list[float]:
    """The statistic of so many samples drawn from the values with replacement, sorted; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  (nothing is kept secret by it)
    return sorted(statistic(chance.choices(values, k=len(values))) for _ in range(draws))


def bootstrap(values: Sequence[float], *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """The mean of the values with its percentile interval; see `bootstrap_of`."""
    return bootstrap_of(values, fmean, level=level, draws=draws, seed=seed)


def bootstrap_of(
    values: Sequence[T],
    statistic: Callable[[Sequence[T]], float],
    *,
    level: float = LEVEL,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """The statistic with its percentile interval. Values that belong together (runs of one task) are to be one value.

    Raises `ValueError` where there are no values.
    """
    if not values:
        raise ValueError("there are no values")
    drawn = resamples(values, statistic, draws=draws, seed=seed)
    low, high = (percentile(drawn, share) for share in ((1 - level) / 2, (1 + level) / 2))
    return Estimate(value=statistic(values), low=low, high=high, count=len(values), level=level)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of sorted values the one below which this share lies, between two of them by proportion."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def pass_at(count: int, correct: int, draws: int) -> float:
    """The chance that at least one of `draws` runs is right, estimated without bias from `correct` right of `count`.

    It is one less the share of all ways to draw that many runs, none twice, in which none is right (Chen et al., 2021).
    Raises `ValueError` where more are drawn than there are.
    """
    if not 0 <= correct <= count or not 1 <= draws <= count:
        raise ValueError(f"{draws} cannot be drawn from {count} runs with {correct} right")
    return 1.0 - math.comb(count - correct, draws) / math.comb(count, draws)
