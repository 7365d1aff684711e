"""Figures with their intervals, and whether one arm is better than another."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from statistics import NormalDist, fmean
from typing import TypeVar

from redstart.core.noun import FrozenValue

T = TypeVar("T")

LEVEL = 0.95
DRAWS = 2000


class Estimate(FrozenValue):
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


ALPHA = 0.05
POWER = 0.8
_CLOSE = 1e-9
"""What two sums may differ by that are equal but for how numbers are rounded."""


class Comparison(FrozenValue):
    """What can be said of B beside A, over the tasks that both did."""

    tasks: int
    pairs: int
    """Runs that both did: of the same task, with the same seed."""
    only_a: int
    """Pairs of which A alone solved its task."""
    only_b: int
    both: int
    difference: Estimate | None = None
    """B's share of solved tasks less A's, over tasks; None where there is no pair."""
    p: float = 1.0
    """How often two equal agents would differ at least as much: exact, over tasks."""
    costs: dict[str, Estimate] = {}
    """B's mean less A's, by what is counted."""
    detectable: float | None = None
    """The smallest true difference that so many tasks show with a power of 80 %; None where even 1 is too small."""

    @property
    def words(self) -> str:
        """What follows, in a sentence."""
        if self.difference is None:
            return "there is no task that both did"
        points = 100 * self.difference.value
        if self.p > ALPHA:
            seen = "any" if self.detectable is None else f"less than {100 * self.detectable:.0f} points"
            return f"no difference is shown ({points:+.1f} points, p = {self.p:.3f}); {seen} would often be missed"
        return f"B is {'better' if points > 0 else 'worse'} by {abs(points):.1f} points (p = {self.p:.3g})"


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact test of McNemar on discordant pairs, two-sided: twice the binomial tail, at most 1."""
    count, fewer = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(count, number) for number in range(fewer + 1))
    return min(1.0, 2 * tail / 2**count)


def exact_paired(differences: Sequence[int]) -> float:
    """The same for tasks with several runs each: of each task how many more of its runs B solved than A.

    If the agents are equal, each difference is as likely with the other sign. The p-value is the share of all choices
    of signs whose sum is at least as far from 0 as what was seen; with one run a task that is McNemar's exact test.
    """
    sizes = [abs(difference) for difference in differences if difference]
    ways: Counter[int] = Counter({0: 1})
    for size in sizes:
        grown: Counter[int] = Counter()
        for total, count in ways.items():
            grown[total + size] += count
            grown[total - size] += count
        ways = grown
    seen = abs(sum(differences))
    return sum(count for total, count in ways.items() if abs(total) >= seen) / 2 ** len(sizes)


def paired_bootstrap(a: Sequence[float], b: Sequence[float], *, level: float = LEVEL, seed: int = 0) -> Estimate:
    """B's mean less A's over the same tasks, resampled by task. Raises `ValueError` where they are not as many."""
    return bootstrap([two - item for item, two in zip(a, b, strict=True)], level=level, seed=seed)


def power_of(pairs: int, discordant: float, difference: float, alpha: float = ALPHA) -> float:
    """The chance that the exact test of McNemar tells a difference, in its true direction. It is no approximation.

    `discordant` is the share of pairs that differ, `difference` that of B alone less that of A alone. The number of
    discordant pairs is a binomial, and so are, of these, those of B alone. Raises `ValueError` where these cannot be.
    """
    _refuse_impossible(discordant, difference)
    ours = (discordant + abs(difference)) / (2 * discordant)
    total = 0.0
    for count in range(1, pairs + 1):
        most = _most_against(count, alpha)
        if most >= 0:
            told = sum(_binomial(count, number, 1 - ours) for number in range(most + 1))
            total += _binomial(pairs, count, discordant) * told
    return total


def detectable(pairs: int, discordant: float, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest difference that so many pairs show with this power, if that share of pairs is discordant.

    A difference cannot be larger than `discordant`: None where even that would be missed too often.
    """
    if not pairs or discordant <= 0 or power_of(pairs, discordant, discordant, alpha) < power:
        return None
    low, high = 0.0, discordant
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if power_of(pairs, discordant, middle, alpha) >= power else (middle, high)
    return high


@cache
def _most_against(count: int, alpha: float) -> int:
    """Of so many discordant pairs how many may go the other way at the most, for the test to tell; -1 for none."""
    most = -1
    while most + 1 <= count // 2 and mcnemar(most + 1, count - most - 1) <= alpha + _CLOSE:
        most += 1
    return most


def _binomial(count: int, number: int, chance: float) -> float:
    if chance in (0.0, 1.0):
        return float(number == (count if chance else 0))
    ways = math.lgamma(count + 1) - math.lgamma(number + 1) - math.lgamma(count - number + 1)
    return math.exp(ways + number * math.log(chance) + (count - number) * math.log(1 - chance))


def _refuse_impossible(discordant: float, difference: float) -> None:
    if not 0 < abs(difference) <= discordant <= 1:
        raise ValueError(f"a difference of {difference} cannot be where {discordant} of the pairs are discordant")
