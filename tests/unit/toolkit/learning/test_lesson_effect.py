from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from redstart.core.lesson import LessonOutcome, LessonStatus
from redstart.toolkit.learning.lesson_effect import (
    ALPHA,
    EFFECTS,
    FEWEST,
    LAST,
    PRIOR,
    STAKES,
    TRIAL,
    BettingCapital,
    LessonBet,
    LessonEvidence,
    decide_lesson_status,
    get_cost,
    learn_prior,
    pool_effect,
)


def use(is_shown: bool, is_green: bool | None, p: float = 0.5, cost: float | None = None) -> LessonOutcome:
    return LessonOutcome(probability=p, shown=is_shown, green=is_green, cost=cost)


def stream(effect: float, count: int, seed: int, base: float = 0.4, p: float = 0.5) -> list[LessonOutcome]:
    chance = random.Random(seed)
    uses: list[LessonOutcome] = []
    for _ in range(count):
        is_shown = chance.random() < p
        uses.append(use(is_shown, chance.random() < base + (effect if is_shown else 0), p))
    return uses


def build_shuffled_uses(shown_green: int, shown_red: int, held_green: int, held_red: int) -> list[LessonOutcome]:
    """Return these numbers of each kind of outcome, shuffled."""
    uses = [use(True, True)] * shown_green + [use(True, False)] * shown_red
    uses += [use(False, True)] * held_green + [use(False, False)] * held_red
    random.Random(5).shuffle(uses)
    return uses


# -- the formula -------------------------------------------------------------------------------------------------------


def test_stakes_and_prior_each_sum_to_one():
    assert math.isclose(sum(STAKES), 1)
    assert math.isclose(sum(PRIOR), 1)
    assert list(PRIOR) == list(reversed(PRIOR))


@pytest.mark.parametrize(
    ("wins", "losses"), [(10, 0), (7, 3), (12, 8), (0, 4), pytest.param(60, 40, marks=pytest.mark.soak)]
)
def test_uniform_bets_on_a_fair_coin_match_the_closed_form(wins: int, losses: int):
    """A uniform mixture over all stakes has 2^n B(won + 1, lost + 1) after n tosses: Ville's and Robbins' martingale,
    whose value is that of Laplace's rule of succession. Ten heads of ten make 1024 / 11 = 93.09."""
    plays = [LessonBet(1.0, 1.0, 1.0)] * wins + [LessonBet(-1.0, 1.0, 1.0)] * losses
    steps = 4000
    total = 0.0
    for step in range(steps):
        bets = BettingCapital(0.0, unit=(step + 0.5) / steps / EFFECTS[-1])
        for bet in plays:
            bets.settle(bet)
        total += (math.exp(bets.log_capital_above[-1]) + math.exp(bets.log_capital_below[-1])) / 2 / steps
    log_beta = math.lgamma(wins + 1) + math.lgamma(losses + 1) - math.lgamma(wins + losses + 2)
    assert total == pytest.approx(2 ** (wins + losses) * math.exp(log_beta), rel=1e-5)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("rate_shown", "rate_withheld"), [(0.7, 0.4), (0.2, 0.6), (0.5, 0.5)])
def test_next_score_has_the_effect_as_mean_and_next_bet_is_fair(p: float, rate_shown: float, rate_withheld: float):
    """Computed exactly, over all possible outcomes, after a past that made the expectation lopsided."""
    past_outcomes = build_shuffled_uses(9, 1, 5, 2)
    mean = 0.0
    factors = [0.0] * (2 * len(EFFECTS))
    bets_before = LessonEvidence(past_outcomes).settle_against(rate_shown - rate_withheld)
    for is_shown, is_green in itertools.product((True, False), repeat=2):
        share = rate_shown if is_shown else rate_withheld
        chance = (p if is_shown else 1 - p) * (share if is_green else 1 - share)
        evidence = LessonEvidence([*past_outcomes, use(is_shown, is_green, p)])
        bets_after = evidence.settle_against(rate_shown - rate_withheld)
        mean += chance * evidence.plays[-1].score
        factor_pairs = zip(
            [*bets_after.log_capital_above, *bets_after.log_capital_below],
            [*bets_before.log_capital_above, *bets_before.log_capital_below],
            strict=True,
        )
        factors = [
            sum_ + chance * math.exp(log_after - log_before)
            for sum_, (log_after, log_before) in zip(factors, factor_pairs, strict=True)
        ]
    assert mean == pytest.approx(rate_shown - rate_withheld)
    assert factors == pytest.approx([1.0] * len(factors))


@pytest.mark.soak
def test_rare_coins_do_not_bankrupt_any_bet():
    chance = random.Random(1)
    evidence = LessonEvidence()
    for number in range(300):
        p = (0.01, 0.5, 0.99)[number % 3]
        evidence.add(use(chance.random() < 0.5, chance.random() < 0.5, p))
    for effect in (-1.0, 0.0, 1.0):
        bets = evidence.settle_against(effect)
        assert all(math.isfinite(item) for item in (*bets.log_capital_above, *bets.log_capital_below))


# -- the interval ------------------------------------------------------------------------------------------------------


def test_every_effect_is_possible_before_any_run():
    assert LessonEvidence().measure_effect() == (0, 0.0, -1.0, 1.0)


@pytest.mark.parametrize("effect", [-0.3, 0.0, 0.25])
def test_interval_ends_where_the_bets_refute(effect: float):
    evidence = LessonEvidence(stream(effect, 400, seed=3))
    interval = evidence.measure_effect()
    assert interval.low < interval.estimate < interval.high
    assert interval.low < effect < interval.high
    assert evidence.settle_against(interval.low - 0.001).too_low
    assert not evidence.settle_against(interval.low + 0.001).too_low
    assert evidence.settle_against(interval.high + 0.001).too_high
    assert not evidence.settle_against(interval.high - 0.001).too_high


def test_quick_check_and_interval_agree():
    for effect, seed in ((0.4, 1), (-0.4, 2), (0.0, 3)):
        evidence = LessonEvidence()
        answers: set[tuple[bool, bool]] = set()
        for number, item in enumerate(stream(effect, 160, seed)):
            evidence.add(item)
            if number % 4:
                continue
            interval = evidence.measure_effect()
            answers.add((evidence.above_zero, evidence.below_zero))
            assert evidence.above_zero == (interval.low > 0)
            assert evidence.below_zero == (interval.high < 0)
        assert (effect > 0, effect < 0) in answers


def test_more_runs_narrow_the_interval_and_improve_the_estimate():
    small_estimate, large_estimate = (
        LessonEvidence(stream(0.2, 100, seed=8)).measure_effect(),
        LessonEvidence(stream(0.2, 1500, seed=8)).measure_effect(),
    )
    assert large_estimate.high - large_estimate.low < (small_estimate.high - small_estimate.low) / 2
    assert large_estimate.estimate == pytest.approx(0.2, abs=0.06)


def test_estimate_stays_correct_when_the_probability_adapts():
    """Runs get easier while the lesson is shown more often: the plain difference of rates would call it useful."""
    chance = random.Random(11)
    evidence = LessonEvidence()
    shares: dict[bool, list[bool]] = {True: [], False: []}
    for number in range(4000):
        is_late = number >= 2000
        p = 0.9 if is_late else 0.5
        is_shown = chance.random() < p
        is_green = chance.random() < (0.9 if is_late else 0.2)
        shares[is_shown].append(is_green)
        evidence.add(use(is_shown, is_green, p))
    rate_difference = sum(shares[True]) / len(shares[True]) - sum(shares[False]) / len(shares[False])
    interval = evidence.measure_effect()
    assert rate_difference > 0.2
    assert interval.low < 0 < interval.high
    assert abs(interval.estimate) < 0.05


@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_repeated_looks_rarely_exclude_the_true_effect(effect: float):
    outside = 0
    for seed in range(200):
        evidence, bets = LessonEvidence(), BettingCapital(effect)
        for item in stream(effect, 200, seed, base=0.35):
            evidence.add(item)
            bets.settle(evidence.plays[-1])
            if bets.too_low or bets.too_high:
                outside += 1
                break
    assert outside <= 200 * ALPHA


@pytest.mark.parametrize(
    "neutral_outcome", [use(True, None), use(False, None, 0.9), use(True, True, 1.0), use(False, True, 0.0)]
)
def test_flaky_or_forced_outcome_is_ignored(neutral_outcome: LessonOutcome):
    uses = stream(0.3, 40, seed=4)
    mixed_uses = [item for pair in zip(uses, [neutral_outcome] * 40, strict=True) for item in pair]
    assert LessonEvidence(mixed_uses).plays == LessonEvidence(uses).plays


# -- cost --------------------------------------------------------------------------------------------------------------


def build_costly_uses(saving: float, count: int, seed: int) -> list[LessonOutcome]:
    chance = random.Random(seed)
    uses: list[LessonOutcome] = []
    for _ in range(count):
        is_shown = chance.random() < 0.5
        cost = min(max(chance.gauss(0.5 - (saving if is_shown else 0), 0.15), 0), 1)
        uses.append(use(is_shown, chance.random() < 0.5, cost=cost))
    return uses


def test_same_bets_prove_a_saving():
    saves = LessonEvidence(build_costly_uses(0.15, 200, seed=1), outcome=get_cost)
    assert saves.below_zero
    assert saves.measure_effect().high < 0
    assert saves.measure_effect().estimate == pytest.approx(-0.15, abs=0.05)
    assert not LessonEvidence(build_costly_uses(0.0, 200, seed=1), outcome=get_cost).below_zero


def test_run_with_unknown_cost_does_not_count_for_cost():
    assert LessonEvidence([use(True, True)] * 5, outcome=get_cost).uses == 0


# -- with the family ---------------------------------------------------------------------------------------------------


def build_families(effect: float) -> list[LessonEvidence]:
    return [LessonEvidence(stream(effect, 200, seed)) for seed in range(20, 24)]


def test_pooled_estimate_without_runs_is_the_stated_prior():
    estimate = pool_effect(LessonEvidence())
    assert estimate.mean == pytest.approx(0)
    assert estimate.deviation == pytest.approx(0.162, abs=0.001)
    assert estimate.helps == pytest.approx(0.3)
    assert estimate.harms == pytest.approx(0.3)
    assert learn_prior([]) == list(PRIOR)
    assert learn_prior([LessonEvidence(), LessonEvidence()]) == list(PRIOR)


def test_family_shifts_the_pooled_estimate_in_its_direction():
    evidence = LessonEvidence(build_shuffled_uses(7, 5, 5, 7))
    helpful_estimate, alone_estimate, harmful_estimate = (
        pool_effect(evidence, build_families(0.3)),
        pool_effect(evidence),
        pool_effect(evidence, build_families(-0.3)),
    )
    assert helpful_estimate.helps > alone_estimate.helps > harmful_estimate.helps
    assert helpful_estimate.mean > alone_estimate.mean > harmful_estimate.mean
    assert helpful_estimate.harms < alone_estimate.harms < harmful_estimate.harms


def test_own_runs_eventually_outweigh_the_family():
    assert pool_effect(LessonEvidence(stream(-0.3, 300, seed=2)), build_families(0.3)).harms > 0.95


def test_estimate_from_few_runs_shrinks_toward_zero():
    evidence = LessonEvidence(build_shuffled_uses(4, 1, 1, 4))
    assert 0 < pool_effect(evidence).mean < evidence.measure_effect().estimate / 2


# -- the status of a lesson --------------------------------------------------------------------------------------------


def decide_status(
    uses: Sequence[LessonOutcome], status: LessonStatus = LessonStatus.new, family: Sequence[LessonEvidence] = ()
) -> LessonStatus:
    return decide_lesson_status(status, LessonEvidence(uses), family=family).status


def find_decision(effect: float, seed: int, family: Sequence[LessonEvidence] = ()) -> tuple[LessonStatus, int]:
    evidence = LessonEvidence()
    for item in stream(effect, LAST + 1, seed):
        evidence.add(item)
        status = decide_lesson_status(LessonStatus.new, evidence, family=family).status
        if status is not LessonStatus.new:
            return status, evidence.uses
    return LessonStatus.new, evidence.uses


def test_very_helpful_lesson_becomes_active():
    assert [find_decision(0.4, seed)[0] for seed in range(5)] == [LessonStatus.active] * 5


def test_harmful_lesson_is_retired_before_the_trial_ends():
    decisions = [find_decision(-0.4, seed) for seed in range(5)]
    assert [status for status, _ in decisions] == [LessonStatus.retired] * 5
    assert max(uses for _, uses in decisions) <= TRIAL


def test_lesson_without_effect_is_eventually_retired_in_any_family():
    for family in ([], build_families(0.3)):
        status, uses = find_decision(0.0, seed=6, family=family)
        assert status is LessonStatus.retired
        assert uses >= TRIAL


@pytest.mark.soak
def test_helpful_family_makes_a_lesson_active_sooner():
    runs_alone = [find_decision(0.3, seed)[1] for seed in range(6)]
    runs_together = [find_decision(0.3, seed, build_families(0.3))[1] for seed in range(6)]
    assert sum(runs_together) < sum(runs_alone)


def test_handful_of_runs_decides_nothing():
    uses = build_shuffled_uses(0, FEWEST // 2, FEWEST // 2 - 1, 0)
    assert decide_status(uses, family=build_families(-0.4)) is LessonStatus.new
    assert (
        decide_status([*uses, use(False, True), use(True, False)], family=build_families(-0.4)) is LessonStatus.retired
    )


def test_active_lesson_that_turns_harmful_is_retired():
    early_uses = stream(0.4, 80, seed=1)
    assert decide_status(early_uses) is LessonStatus.active
    all_uses = [*early_uses, *stream(-0.4, 400, seed=2, base=0.5, p=0.9)]
    assert decide_status(all_uses, LessonStatus.active) is LessonStatus.retired


def test_lesson_that_saves_cost_without_harm_becomes_active():
    uses = build_costly_uses(0.15, 200, seed=3)
    decision = decide_lesson_status(LessonStatus.new, LessonEvidence(uses), cost=LessonEvidence(uses, outcome=get_cost))
    assert decision.status is LessonStatus.active
    assert "saves" in decision.reason


def test_costly_lesson_without_benefit_is_retired_before_its_trial_ends():
    uses = build_costly_uses(-0.3, 50, seed=4)
    decision = decide_lesson_status(LessonStatus.new, LessonEvidence(uses), cost=LessonEvidence(uses, outcome=get_cost))
    assert (decision.status, decision.reason) == (
        LessonStatus.retired,
        "it makes runs more expensive: proven over 50 runs",
    )
    assert decide_lesson_status(LessonStatus.new, LessonEvidence(uses)).status is LessonStatus.new


@pytest.mark.parametrize("status", [LessonStatus.retired, LessonStatus.quarantined])
def test_retired_or_quarantined_lesson_keeps_its_status(status: LessonStatus):
    assert decide_status(stream(0.4, 200, seed=1), status) is status


def test_reason_names_the_number_of_runs():
    decision = decide_lesson_status(LessonStatus.new, LessonEvidence(stream(0.4, 200, seed=1)))
    assert decision.reason == "it helps: proven over 200 runs"
