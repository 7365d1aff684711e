"""Measure the effect of a lesson: the solve rate with it, minus the solve rate without it.

Each run is an experiment: a coin of known probability p, fixed before the toss, shows the lesson or withholds it. With
the outcome y (1 for green) and the outcome b expected from earlier runs, the score

    x = (y - b) / p        if shown,        x = -(y - b) / (1 - p)        if withheld

has the mean E[y | shown] - E[y | withheld], whatever the tasks and the other lessons are, and however p and b depend on
earlier observations (inverse probability weighting; Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro, "Anytime-valid
off-policy inference for contextual bandits", arXiv 2210.10768).

**Proven, per lesson, at every look** (`LessonEvidence.measure_effect`). If the effect is d, a gambler who stakes the
share l of the capital on x - d plays a fair game: the product of 1 + l (x - d) is a martingale, and by Ville's
inequality it ever passes 1/a with a probability of at most a. The interval contains the effects that no such gambler
has refuted (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86, 2024). Our
gamblers spread their capital over a few effects e (`EFFECTS`) and stake Kelly's l = e / variance, capped so that they
cannot go broke. l does not depend on d, so the product falls with d and the set is an interval. If the effect is the
same in all uses, the interval contains it, at all looks together, with a probability of at least 95 %. If the effect
drifts, the proof is one-sided: a lesson that never helps reaches low > 0 with at most 2.5 %, and one that never harms
reaches high < 0 with at most 2.5 %.

**Not proven, but useful sooner** (`pool_effects`). The product for e is also, nearly, the likelihood ratio of e against
an effect of 0. With a prior over the effects, this is Bayes' rule. The prior is stated (`PRIOR`: mean 0, standard
deviation 0.16, two in five lessons do nothing) and learned from the other lessons of the family, where it counts as
much as `PRIOR_STRENGTH` lessons. The resulting chance is right on average over lessons if the prior is right; for a
single lesson there is no guarantee. It does not depend on how often one looks.

All of this is per lesson: of 200 useless lessons, the proof may well call five helpful. Uses without an outcome, and
those where p was 0 or 1, are excluded. Exclusion must not depend on the lesson: a run is flaky because of its tests
before the first change, or it stopped because of a problem of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import add, mul
from typing import NamedTuple

from redstart.core.lesson import LessonOutcome, LessonStatus

ALPHA = 0.05
"""The interval's probability of error, half on each side."""
EFFECTS = (0.05, 0.10, 0.20, 0.40)
"""The effect sizes that gamblers bet on, up and down."""
STAKES = (0.10, 0.30, 0.30, 0.30)
"""How a gambler spreads the capital over them. Any shares keep the interval valid; these were fixed beforehand."""
PRIOR = (0.05, 0.10, 0.10, 0.05, 0.40, 0.05, 0.10, 0.10, 0.05)
"""The prior probability of each effect: -0.40, -0.20, -0.10, -0.05, 0, 0.05, 0.10, 0.20, 0.40."""
STRENGTH = 4.0
"""How many lessons of the family the prior counts as."""
ROUNDS = 3
"""The number of rounds in which a family's shares are learned from its lessons."""
COST_UNIT = 0.5
"""Savings use effects of half the size: saving 0.40 of a run's greatest cost would be rare."""

ACTIVE_CHANCE = 0.95
"""The pooled chance of helping from which a lesson is active."""
HARMS = 0.85
"""The pooled chance of harm from which it is retired. Below ACTIVE_CHANCE: a lost lesson costs less than a bad one."""
FEWEST = 8
"""The number of uses before which the pooled chance decides nothing."""
TRIAL = 60
"""The number of uses after which a lesson must show signs of helping."""
FULL_TRIAL = 350
"""After its trial, a lesson needs a pooled chance of helping of uses / FULL_TRIAL_USES, up to MAX_TRIAL_CHANCE."""
HOPE = 0.5
"""The highest chance that a lesson needs in its trial."""
LAST = 500
"""The number of uses after which a lesson that is still not active is retired."""

_SIGNED_EFFECTS = (*(-effect for effect in reversed(EFFECTS)), 0.0, *EFFECTS)
_RICH = math.log(2 / ALPHA)
"""The logarithm of the capital that refutes an effect. Each side has half of ALPHA."""
_CAUTION = 0.9
"""The largest share of the capital that a gambler can lose at once."""


class LessonBet(NamedTuple):
    """One use of a lesson, as gamblers see it."""

    score: float
    precision: float
    """One over the expected variance of the score."""
    max_stake: float
    """The largest stake that cannot ruin a gambler, whatever the score and the effect are."""


class LessonEffect(NamedTuple):
    """The measured effect of one lesson, in solve rate (0.10 is ten points) or in shares of a run's greatest cost."""

    uses: int
    estimate: float
    """The mean score, weighted by precision."""
    low: float
    high: float


class PooledEffect(NamedTuple):
    """The effect by a lesson's own runs and its family together. An estimate under the stated prior, not a proof."""

    mean: float
    deviation: float
    helps: float
    """The chance that the lesson helps at all."""
    harms: float


class BettingCapital:
    """What gamblers make of a capital of 1 by betting that the true effect is above, or below, a supposed one."""

    def __init__(self, supposed_effect: float, unit: float = 1.0) -> None:
        self.supposed_effect = supposed_effect
        self._unit = unit
        self.log_capital_above = [0.0] * len(EFFECTS)
        """Logarithms, one for each effect that gamblers bet on."""
        self.log_capital_below = [0.0] * len(EFFECTS)

    def settle(self, bet: LessonBet) -> None:
        difference = bet.score - self.supposed_effect
        for number, effect in enumerate(EFFECTS):
            gain = min(effect * self._unit * bet.precision, bet.max_stake) * difference
            self.log_capital_above[number] += math.log1p(gain)
            self.log_capital_below[number] += math.log1p(-gain)

    @property
    def too_low(self) -> bool:
        """Whether the gambler who bets above the supposed effect has refuted it."""
        return _compute_log_sum(self.log_capital_above) >= _RICH

    @property
    def too_high(self) -> bool:
        return _compute_log_sum(self.log_capital_below) >= _RICH


class LessonEvidence:
    """The evidence about one lesson, in the order of its draws. Runs may have overlapped."""

    def __init__(
        self, uses: Sequence[LessonOutcome] = (), *, outcome: Callable[[LessonOutcome], float | None] | None = None
    ) -> None:
        """`outcome` gives the compared value, from 0 to 1. By default, it is whether the run was green."""
        self.plays: list[LessonBet] = []
        self._outcome = outcome or _get_solved
        self._unit = 1.0 if outcome is None else COST_UNIT
        self._sum = self._squares = 0.0
        self._weighted = self._precision = 0.0
        self.bets = BettingCapital(0.0, self._unit)
        """The bets against an effect of 0."""
        self._likelihood: list[float] | None = None
        for use in uses:
            self.add(use)

    def add(self, use: LessonOutcome) -> None:
        """Add one run. A use without information changes nothing."""
        outcome = self._outcome(use)
        if outcome is None or not use.counts:
            return
        count = len(self.plays)
        expected = (0.5 + self._sum) / (1 + count)
        spread = (0.25 + self._squares) / (1 + count)
        p = use.probability
        score = (outcome - expected) / p if use.shown else (expected - outcome) / (1 - p)
        furthest = 1 + max(expected, 1 - expected) / min(p, 1 - p)
        bet = LessonBet(score, p * (1 - p) / spread, _CAUTION / furthest)
        self.plays.append(bet)
        self._sum += outcome
        self._squares += (outcome - expected) ** 2
        self._weighted += bet.score * bet.precision
        self._precision += bet.precision
        self.bets.settle(bet)
        self._likelihood = None

    @property
    def likelihood(self) -> list[float]:
        """The likelihood of each effect in the order of `PRIOR`, up to a factor."""
        if self._likelihood is None:
            logarithms = (*reversed(self.bets.log_capital_below), 0.0, *self.bets.log_capital_above)
            largest = max(logarithms)
            self._likelihood = [math.exp(item - largest) for item in logarithms]
        return self._likelihood

    @property
    def uses(self) -> int:
        return len(self.plays)

    @property
    def above_zero(self) -> bool:
        """Whether `measure_effect().low > 0` is proven, without a search for the bound."""
        return self.bets.too_low

    @property
    def below_zero(self) -> bool:
        """Whether `measure_effect().high < 0` is proven."""
        return self.bets.too_high

    def settle_against(self, supposed_effect: float) -> BettingCapital:
        """Settle all bets against another effect, between -1 and 1."""
        bets = BettingCapital(supposed_effect, self._unit)
        for bet in self.plays:
            bets.settle(bet)
        return bets

    def measure_effect(self) -> LessonEffect:
        """Measure the effect and its interval, widened by at most 0.0005. Without evidence, the interval is [-1, 1]."""
        low = self._bound(-1.0, 1.0, lambda bets: bets.too_low)
        high = self._bound(1.0, -1.0, lambda bets: bets.too_high)
        estimate = self._weighted / self._precision if self._precision else 0.0
        return LessonEffect(self.uses, min(max(estimate, low), high), low, high)

    def _bound(self, refuted: float, open_end: float, is_refuted: Callable[[BettingCapital], bool]) -> float:
        """Find where the refuted effects end, from `refuted` towards `open_end`."""
        if not is_refuted(self.settle_against(refuted)):
            return refuted
        while abs(open_end - refuted) > 0.0005:
            middle = (open_end + refuted) / 2
            if is_refuted(self.settle_against(middle)):
                refuted = middle
            else:
                open_end = middle
        return refuted


def _get_solved(use: LessonOutcome) -> float | None:
    return None if use.green is None else float(use.green)


def get_cost(use: LessonOutcome) -> float | None:
    """Return the cost of a use, for `LessonEvidence(outcome=get_cost)`. An effect below 0 is a saving."""
    return use.cost


def _compute_log_sum(logarithms: Sequence[float]) -> float:
    """Return the logarithm of the stake-weighted sum over all effects. `logarithms` start at the smallest effect."""
    largest = max(logarithms)
    return largest + math.log(
        sum(stake * math.exp(item - largest) for stake, item in zip(STAKES, logarithms, strict=True))
    )


def learn_prior(family: Sequence[LessonEvidence]) -> list[float]:
    """Learn the prior from these lessons, in the order of `PRIOR`. Without lessons, it is the stated prior."""
    shares = list(PRIOR)
    likelihoods = [evidence.likelihood for evidence in family if evidence.uses]
    for _ in range(ROUNDS if likelihoods else 0):
        sums = [STRENGTH * item for item in PRIOR]
        for likelihood in likelihoods:
            sums = list(map(add, sums, _compute_posterior(shares, likelihood)))
        shares = [item / (STRENGTH + len(likelihoods)) for item in sums]
    return shares


def _compute_posterior(prior: Sequence[float], likelihood: Sequence[float]) -> list[float]:
    chances = list(map(mul, prior, likelihood))
    total = sum(chances)
    return [chance / total for chance in chances]


def pool_effect(evidence: LessonEvidence, family: Sequence[LessonEvidence] = ()) -> PooledEffect:
    """Estimate a lesson's effect with the help of its family. `family` has the family's other lessons."""
    chances = _compute_posterior(learn_prior(family), evidence.likelihood)
    mean = sum(map(mul, chances, _SIGNED_EFFECTS))
    square = sum(chance * effect * effect for chance, effect in zip(chances, _SIGNED_EFFECTS, strict=True))
    middle = len(EFFECTS)
    return PooledEffect(
        mean, math.sqrt(max(square - mean * mean, 0.0)), sum(chances[middle + 1 :]), sum(chances[:middle])
    )


class StatusDecision(NamedTuple):
    status: LessonStatus
    reason: str


def decide_lesson_status(
    status: LessonStatus,
    evidence: LessonEvidence,
    *,
    cost: LessonEvidence | None = None,
    family: Sequence[LessonEvidence] = (),
) -> StatusDecision:
    """Decide a lesson's status and the reason that the user reads. `retired` and `quarantined` never change.

    By proof alone, a lesson that neither helps nor saves becomes active with a probability of at most 5 %, however
    often one asks: 2.5 % by green and 2.5 % by cost. The pooled chance may activate it sooner, which is a bet on the
    family.
    """
    if status in (LessonStatus.retired, LessonStatus.quarantined):
        return StatusDecision(status, "")
    if evidence.below_zero:
        return StatusDecision(LessonStatus.retired, f"it harms: proven over {evidence.uses} runs")
    if evidence.above_zero:
        return StatusDecision(LessonStatus.active, f"it helps: proven over {evidence.uses} runs")
    if evidence.uses < FEWEST:
        return StatusDecision(status, "")
    chance = pool_effect(evidence, family)
    if chance.harms >= HARMS:
        return StatusDecision(
            LessonStatus.retired, f"it likely harms ({chance.harms:.0%}), by {evidence.uses} runs and its family"
        )
    if cost is not None and cost.below_zero and chance.harms < HOPE:
        return StatusDecision(LessonStatus.active, f"it saves: proven over {cost.uses} runs")
    if chance.helps >= ACTIVE_CHANCE:
        return StatusDecision(
            LessonStatus.active, f"it likely helps ({chance.helps:.0%}), by {evidence.uses} runs and its family"
        )
    if cost is not None and cost.above_zero and chance.helps < HOPE:
        return StatusDecision(LessonStatus.retired, f"it makes runs more expensive: proven over {cost.uses} runs")
    if evidence.uses >= TRIAL and chance.helps < min(evidence.uses / FULL_TRIAL, HOPE):
        return StatusDecision(LessonStatus.retired, f"it takes up space and showed no effect in {evidence.uses} runs")
    if status is LessonStatus.new and evidence.uses >= LAST:
        return StatusDecision(LessonStatus.retired, f"it was not shown to help in {evidence.uses} runs")
    return StatusDecision(status, "")
