"""What a lesson is worth: the share of green with it, less the share without.

Each run is an experiment: a coin of known probability p, fixed before it falls, shows the lesson or withholds it. With
y the outcome (1 for green) and b what was expected of it from earlier runs, the score

    x = (y - b) / p        if shown,        x = -(y - b) / (1 - p)        if withheld

has the mean E[y | shown] - E[y | withheld], whatever the tasks, whatever the other lessons, and however p and b were
chosen from what was seen before (inverse probability weighting; Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro,
"Anytime-valid off-policy inference for contextual bandits", arXiv 2210.10768).

**Proven, per lesson, at every look** (`LessonEvidence.worth`). If the effect is d, a gambler who stakes the share l of
what he has on x - d plays a fair game: the product of 1 + l (x - d) is a martingale, and by Ville's inequality passes
1/a with a probability of at most a, ever. The interval is what no such gambler has refuted (Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", JRSS B 86, 2024). Our gamblers spread what they have over a
few effects e (`EFFECTS`) and stake Kelly's l = e / variance, cut so that they cannot go broke. l does not depend on d,
so that the product falls with d and the set is an interval. For an effect that is the same in all uses the interval
holds it, at all looks together, with a probability of at least 95 %. Where the effect drifts, what remains proven is
one-sided: low > 0 is reached with at most 2.5 % by a lesson that never helps, high < 0 by one that never harms.

**Not proven, but useful sooner** (`pooled`). The product that belongs to e is also, nearly, how much likelier e makes
what was seen than an effect of 0. With a prior over the effects that is Bayes' rule. The prior is stated (`PRIOR`: mean
0, standard deviation 0.16, two in five lessons do nothing) and learned from the other lessons of the family, in which
it counts as much as `STRENGTH` lessons. The chance that results is right on the average over lessons if the prior is;
for a single lesson nothing is promised. It does not matter to it how often one looks.

All of this is per lesson: of 200 useless ones five may well be called helpful by the proof. Set aside are uses without
an outcome and those where p was 0 or 1. Setting aside must not depend on the lesson: a run is flaky by its tests before
the first change, or broke off by trouble of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import add, mul
from typing import NamedTuple

from redstart.core.lesson import LessonOutcome, LessonStatus

ALPHA = 0.05
"""Of the interval, half on each side."""
EFFECTS = (0.05, 0.10, 0.20, 0.40)
"""Sizes of an effect that are bet on, up and down."""
STAKES = (0.10, 0.30, 0.30, 0.30)
"""How a gambler spreads what he has over them. Any shares keep the interval valid; these were fixed beforehand."""
PRIOR = (0.05, 0.10, 0.10, 0.05, 0.40, 0.05, 0.10, 0.10, 0.05)
"""How likely an effect is before anything was seen: -0.40, -0.20, -0.10, -0.05, 0, 0.05, 0.10, 0.20, 0.40."""
STRENGTH = 4.0
"""How many lessons of the family the prior outweighs."""
ROUNDS = 3
"""In which a family's shares are learned from its lessons."""
COST_UNIT = 0.5
"""A saving is looked for in steps of half the size: 0.40 of what a run may cost would be rare."""

SURE = 0.95
"""The pooled chance to help from which a lesson is active."""
HARMS = 0.85
"""The pooled chance to harm from which it is retired. Lower than SURE: a lesson lost costs less than one that harms."""
FEWEST = 8
"""Uses before which nothing is decided by the pooled chance."""
TRIAL = 60
"""Uses after which a lesson has to look as if it helped."""
FULL_TRIAL = 350
"""The pooled chance to help that it needs then is its uses as a share of this, up to HOPE: the longer, the more."""
HOPE = 0.5
"""The most that is asked of a lesson in its trial."""
LAST = 500
"""Uses after which one that is still not active is retired."""

_SIGNED = (*(-effect for effect in reversed(EFFECTS)), 0.0, *EFFECTS)
_RICH = math.log(2 / ALPHA)
"""What refutes, as a logarithm: each side has half of ALPHA."""
_CAUTION = 0.9
"""The largest share of what he has that a gambler can lose at once."""


class LessonBet(NamedTuple):
    """One use, as gamblers see it."""

    score: float
    precision: float
    """One over the variance expected of the score."""
    most: float
    """The largest stake that cannot ruin, whatever the score and the effect."""


class LessonEffect(NamedTuple):
    """The measured worth of one lesson. An effect is in points of green (0.10 is ten), or in a run's greatest cost."""

    uses: int
    estimate: float
    """The mean score, each weighted by its precision."""
    low: float
    high: float


class PooledEffect(NamedTuple):
    """What its own runs and its family say together. An estimate under the stated prior, not a proof."""

    mean: float
    deviation: float
    helps: float
    """The chance that it helps at all."""
    harms: float


class BettingCapital:
    """What gamblers have made of 1 by betting that the true effect is above, or below, a supposed one."""

    def __init__(self, supposed: float, unit: float = 1.0) -> None:
        self.supposed = supposed
        self._unit = unit
        self.above = [0.0] * len(EFFECTS)
        """As logarithms, for each effect that is bet on."""
        self.below = [0.0] * len(EFFECTS)

    def settle(self, play: LessonBet) -> None:
        away = play.score - self.supposed
        for number, effect in enumerate(EFFECTS):
            won = min(effect * self._unit * play.precision, play.most) * away
            self.above[number] += math.log1p(won)
            self.below[number] += math.log1p(-won)

    @property
    def too_low(self) -> bool:
        """Whether the supposed effect is refuted by the one who bets above it."""
        return _spread_over(self.above) >= _RICH

    @property
    def too_high(self) -> bool:
        return _spread_over(self.below) >= _RICH


class LessonEvidence:
    """What was seen of one lesson, in the order in which its coins fell. Runs may have gone on side by side."""

    def __init__(
        self, uses: Sequence[LessonOutcome] = (), *, outcome: Callable[[LessonOutcome], float | None] | None = None
    ) -> None:
        """`outcome` says what is compared, from 0 to 1: whether the run was green, unless something else is given."""
        self.plays: list[LessonBet] = []
        self._outcome = outcome or _green
        self._unit = 1.0 if outcome is None else COST_UNIT
        self._sum = self._squares = 0.0
        self._weighted = self._precision = 0.0
        self.bets = BettingCapital(0.0, self._unit)
        """Against an effect of 0."""
        self._likelihood: list[float] | None = None
        for use in uses:
            self.add(use)

    def add(self, use: LessonOutcome) -> None:
        """One more run. A use that says nothing changes nothing."""
        outcome = self._outcome(use)
        if outcome is None or not use.counts:
            return
        seen = len(self.plays)
        expected = (0.5 + self._sum) / (1 + seen)
        spread = (0.25 + self._squares) / (1 + seen)
        p = use.probability
        score = (outcome - expected) / p if use.shown else (expected - outcome) / (1 - p)
        furthest = 1 + max(expected, 1 - expected) / min(p, 1 - p)
        play = LessonBet(score, p * (1 - p) / spread, _CAUTION / furthest)
        self.plays.append(play)
        self._sum += outcome
        self._squares += (outcome - expected) ** 2
        self._weighted += play.score * play.precision
        self._precision += play.precision
        self.bets.settle(play)
        self._likelihood = None

    @property
    def likelihood(self) -> list[float]:
        """Of each effect in the order of `PRIOR`, up to a factor."""
        if self._likelihood is None:
            made = (*reversed(self.bets.below), 0.0, *self.bets.above)
            largest = max(made)
            self._likelihood = [math.exp(item - largest) for item in made]
        return self._likelihood

    @property
    def uses(self) -> int:
        return len(self.plays)

    @property
    def above_zero(self) -> bool:
        """Whether it is proven: `worth().low > 0`, without looking for the bound."""
        return self.bets.too_low

    @property
    def below_zero(self) -> bool:
        """Whether it is proven: `worth().high < 0`."""
        return self.bets.too_high

    def against(self, supposed: float) -> BettingCapital:
        """All bets against another effect, between -1 and 1."""
        bets = BettingCapital(supposed, self._unit)
        for play in self.plays:
            bets.settle(play)
        return bets

    def worth(self) -> LessonEffect:
        """With its interval, widened by at most 0.0005. Before anything is known it is all of [-1, 1]."""
        low = self._bound(-1.0, 1.0, lambda bets: bets.too_low)
        high = self._bound(1.0, -1.0, lambda bets: bets.too_high)
        estimate = self._weighted / self._precision if self._precision else 0.0
        return LessonEffect(self.uses, min(max(estimate, low), high), low, high)

    def _bound(self, refuted: float, open_end: float, is_refuted: Callable[[BettingCapital], bool]) -> float:
        """Where the refuted effects end, from the one end of all effects towards the other."""
        if not is_refuted(self.against(refuted)):
            return refuted
        while abs(open_end - refuted) > 0.0005:
            middle = (open_end + refuted) / 2
            if is_refuted(self.against(middle)):
                refuted = middle
            else:
                open_end = middle
        return refuted


def _green(use: LessonOutcome) -> float | None:
    return None if use.green is None else float(use.green)


def spent(use: LessonOutcome) -> float | None:
    """For `LessonEvidence(outcome=spent)`: what it cost. An effect below 0 is a saving."""
    return use.cost


def _spread_over(made: Sequence[float]) -> float:
    """The logarithm of the sum over all effects, each with its stake; `made` from the smallest effect on."""
    largest = max(made)
    return largest + math.log(sum(stake * math.exp(item - largest) for stake, item in zip(STAKES, made, strict=True)))


def learned(family: Sequence[LessonEvidence]) -> list[float]:
    """The prior after these lessons, in the order of `PRIOR`. Without any it is the stated one."""
    shares = list(PRIOR)
    likelihoods = [evidence.likelihood for evidence in family if evidence.uses]
    for _ in range(ROUNDS if likelihoods else 0):
        sums = [STRENGTH * item for item in PRIOR]
        for likelihood in likelihoods:
            sums = list(map(add, sums, _posterior(shares, likelihood)))
        shares = [item / (STRENGTH + len(likelihoods)) for item in sums]
    return shares


def _posterior(prior: Sequence[float], likelihood: Sequence[float]) -> list[float]:
    chances = list(map(mul, prior, likelihood))
    total = sum(chances)
    return [chance / total for chance in chances]


def pooled(own: LessonEvidence, family: Sequence[LessonEvidence] = ()) -> PooledEffect:
    """What to think of a lesson with its family in mind. `family` is its other lessons, without itself."""
    chances = _posterior(learned(family), own.likelihood)
    mean = sum(map(mul, chances, _SIGNED))
    square = sum(chance * effect * effect for chance, effect in zip(chances, _SIGNED, strict=True))
    middle = len(EFFECTS)
    return PooledEffect(
        mean, math.sqrt(max(square - mean * mean, 0.0)), sum(chances[middle + 1 :]), sum(chances[:middle])
    )


class StatusDecision(NamedTuple):
    status: LessonStatus
    reason: str


def standing(
    status: LessonStatus,
    green: LessonEvidence,
    *,
    cost: LessonEvidence | None = None,
    family: Sequence[LessonEvidence] = (),
) -> StatusDecision:
    """What a lesson is from now on, with the reason in the user's words. Never leaves `retired` or `quarantined`.

    By proof alone a lesson that neither helps nor saves becomes active with at most 5 %, however often one asks: 2.5 %
    by green and 2.5 % by cost. The pooled chance may make it active sooner, and that is a bet on the family.
    """
    if status in (LessonStatus.retired, LessonStatus.quarantined):
        return StatusDecision(status, "")
    if green.below_zero:
        return StatusDecision(LessonStatus.retired, f"it harms: proven over {green.uses} runs")
    if green.above_zero:
        return StatusDecision(LessonStatus.active, f"it helps: proven over {green.uses} runs")
    if green.uses < FEWEST:
        return StatusDecision(status, "")
    chance = pooled(green, family)
    if chance.harms >= HARMS:
        return StatusDecision(
            LessonStatus.retired, f"it likely harms ({chance.harms:.0%}), by {green.uses} runs and its family"
        )
    if cost is not None and cost.below_zero and chance.harms < HOPE:
        return StatusDecision(LessonStatus.active, f"it saves: proven over {cost.uses} runs")
    if chance.helps >= SURE:
        return StatusDecision(
            LessonStatus.active, f"it likely helps ({chance.helps:.0%}), by {green.uses} runs and its family"
        )
    if cost is not None and cost.above_zero and chance.helps < HOPE:
        return StatusDecision(LessonStatus.retired, f"it makes runs dearer: proven over {cost.uses} runs")
    if green.uses >= TRIAL and chance.helps < min(green.uses / FULL_TRIAL, HOPE):
        return StatusDecision(LessonStatus.retired, f"it takes room and showed nothing in {green.uses} runs")
    if status is LessonStatus.new and green.uses >= LAST:
        return StatusDecision(LessonStatus.retired, f"it was not shown to help in {green.uses} runs")
    return StatusDecision(status, "")
