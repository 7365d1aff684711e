from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from redstart.core.lesson import LessonOutcome, LessonStatus
from redstart.toolkit.learning.worth import (
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
    learned,
    pooled,
    spent,
    standing,
)


def use(shown: bool, green: bool | None, p: float = 0.5, cost: float | None = None) -> LessonOutcome:
    return LessonOutcome(probability=p, shown=shown, green=green, cost=cost)


def stream(effect: float, count: int, seed: int, base: float = 0.4, p: float = 0.5) -> list[LessonOutcome]:
    chance = random.Random(seed)
    uses: list[LessonOutcome] = []
    for _ in range(count):
        shown = chance.random() < p
        uses.append(use(shown, chance.random() < base + (effect if shown else 0), p))
    return uses


def even(shown_green: int, shown_red: int, held_green: int, held_red: int) -> list[LessonOutcome]:
    """Return these numbers of each kind of outcome, shuffled."""
    uses = [use(True, True)] * shown_green + [use(True, False)] * shown_red
    uses += [use(False, True)] * held_green + [use(False, False)] * held_red
    random.Random(5).shuffle(uses)
    return uses


# -- the formula -------------------------------------------------------------------------------------------------------


def test_the_shares_of_gamblers_and_of_the_prior_are_shares():
    assert math.isclose(sum(STAKES), 1)
    assert math.isclose(sum(PRIOR), 1)
    assert list(PRIOR) == list(reversed(PRIOR))


@pytest.mark.parametrize(
    ("won", "lost"), [(10, 0), (7, 3), (12, 8), (0, 4), pytest.param(60, 40, marks=pytest.mark.soak)]
)
def test_bets_on_a_fair_coin_spread_evenly_make_what_the_closed_form_says(won: int, lost: int):
    """A uniform mixture over all stakes has 2^n B(won + 1, lost + 1) after n tosses: Ville's and Robbins' martingale,
    whose value is that of Laplace's rule of succession. Ten heads of ten make 1024 / 11 = 93.09."""
    plays = [LessonBet(1.0, 1.0, 1.0)] * won + [LessonBet(-1.0, 1.0, 1.0)] * lost
    steps = 4000
    total = 0.0
    for step in range(steps):
        bets = BettingCapital(0.0, unit=(step + 0.5) / steps / EFFECTS[-1])
        for play in plays:
            bets.settle(play)
        total += (math.exp(bets.above[-1]) + math.exp(bets.below[-1])) / 2 / steps
    log_beta = math.lgamma(won + 1) + math.lgamma(lost + 1) - math.lgamma(won + lost + 2)
    assert total == pytest.approx(2 ** (won + lost) * math.exp(log_beta), rel=1e-5)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("with_it", "without"), [(0.7, 0.4), (0.2, 0.6), (0.5, 0.5)])
def test_the_next_score_has_the_effect_as_its_mean_and_the_next_bet_is_fair(p: float, with_it: float, without: float):
    """Computed exactly, over all possible outcomes, after a past that made the expectation lopsided."""
    past = even(9, 1, 5, 2)
    mean = 0.0
    factors = [0.0] * (2 * len(EFFECTS))
    before = LessonEvidence(past).against(with_it - without)
    for shown, green in itertools.product((True, False), repeat=2):
        share = with_it if shown else without
        chance = (p if shown else 1 - p) * (share if green else 1 - share)
        evidence = LessonEvidence([*past, use(shown, green, p)])
        after = evidence.against(with_it - without)
        mean += chance * evidence.plays[-1].score
        made = zip([*after.above, *after.below], [*before.above, *before.below], strict=True)
        factors = [sum_ + chance * math.exp(now - then) for sum_, (now, then) in zip(factors, made, strict=True)]
    assert mean == pytest.approx(with_it - without)
    assert factors == pytest.approx([1.0] * len(factors))


@pytest.mark.soak
def test_nobody_goes_broke_even_by_rare_coins():
    chance = random.Random(1)
    evidence = LessonEvidence()
    for number in range(300):
        p = (0.01, 0.5, 0.99)[number % 3]
        evidence.add(use(chance.random() < 0.5, chance.random() < 0.5, p))
    for supposed in (-1.0, 0.0, 1.0):
        bets = evidence.against(supposed)
        assert all(math.isfinite(item) for item in (*bets.above, *bets.below))


# -- the interval ------------------------------------------------------------------------------------------------------


def test_before_anything_is_seen_every_effect_is_possible():
    assert LessonEvidence().worth() == (0, 0.0, -1.0, 1.0)


@pytest.mark.parametrize("effect", [-0.3, 0.0, 0.25])
def test_the_interval_ends_where_the_bets_refute(effect: float):
    evidence = LessonEvidence(stream(effect, 400, seed=3))
    worth = evidence.worth()
    assert worth.low < worth.estimate < worth.high
    assert worth.low < effect < worth.high
    assert evidence.against(worth.low - 0.001).too_low
    assert not evidence.against(worth.low + 0.001).too_low
    assert evidence.against(worth.high + 0.001).too_high
    assert not evidence.against(worth.high - 0.001).too_high


def test_the_quick_question_and_the_interval_agree():
    for effect, seed in ((0.4, 1), (-0.4, 2), (0.0, 3)):
        evidence = LessonEvidence()
        answers: set[tuple[bool, bool]] = set()
        for number, item in enumerate(stream(effect, 160, seed)):
            evidence.add(item)
            if number % 4:
                continue
            worth = evidence.worth()
            answers.add((evidence.above_zero, evidence.below_zero))
            assert evidence.above_zero == (worth.low > 0)
            assert evidence.below_zero == (worth.high < 0)
        assert (effect > 0, effect < 0) in answers


def test_more_runs_make_it_narrower_and_the_estimate_comes_near():
    few, many = LessonEvidence(stream(0.2, 100, seed=8)).worth(), LessonEvidence(stream(0.2, 1500, seed=8)).worth()
    assert many.high - many.low < (few.high - few.low) / 2
    assert many.estimate == pytest.approx(0.2, abs=0.06)


def test_the_estimate_stays_right_when_the_probability_changes_with_what_was_seen():
    """Runs get easier while the lesson is shown more often: the plain difference of rates would call it useful."""
    chance = random.Random(11)
    evidence = LessonEvidence()
    shares: dict[bool, list[bool]] = {True: [], False: []}
    for number in range(4000):
        late = number >= 2000
        p = 0.9 if late else 0.5
        shown = chance.random() < p
        green = chance.random() < (0.9 if late else 0.2)
        shares[shown].append(green)
        evidence.add(use(shown, green, p))
    bare = sum(shares[True]) / len(shares[True]) - sum(shares[False]) / len(shares[False])
    worth = evidence.worth()
    assert bare > 0.2
    assert worth.low < 0 < worth.high
    assert abs(worth.estimate) < 0.05


@pytest.mark.parametrize("effect", [0.0, 0.3])
def test_however_often_one_looks_the_effect_is_rarely_outside(effect: float):
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
    "nothing", [use(True, None), use(False, None, 0.9), use(True, True, 1.0), use(False, True, 0.0)]
)
def test_what_is_flaky_or_left_no_choice_is_set_aside(nothing: LessonOutcome):
    uses = stream(0.3, 40, seed=4)
    with_it = [item for pair in zip(uses, [nothing] * 40, strict=True) for item in pair]
    assert LessonEvidence(with_it).plays == LessonEvidence(uses).plays


# -- cost --------------------------------------------------------------------------------------------------------------


def costly(saving: float, count: int, seed: int) -> list[LessonOutcome]:
    chance = random.Random(seed)
    uses: list[LessonOutcome] = []
    for _ in range(count):
        shown = chance.random() < 0.5
        cost = min(max(chance.gauss(0.5 - (saving if shown else 0), 0.15), 0), 1)
        uses.append(use(shown, chance.random() < 0.5, cost=cost))
    return uses


def test_a_saving_is_proven_by_the_same_bets():
    saves = LessonEvidence(costly(0.15, 200, seed=1), outcome=spent)
    assert saves.below_zero
    assert saves.worth().high < 0
    assert saves.worth().estimate == pytest.approx(-0.15, abs=0.05)
    assert not LessonEvidence(costly(0.0, 200, seed=1), outcome=spent).below_zero


def test_runs_whose_cost_is_unknown_do_not_count_for_cost():
    assert LessonEvidence([use(True, True)] * 5, outcome=spent).uses == 0


# -- with the family ---------------------------------------------------------------------------------------------------


def families(effect: float) -> list[LessonEvidence]:
    return [LessonEvidence(stream(effect, 200, seed)) for seed in range(20, 24)]


def test_without_any_run_the_pooled_estimate_is_the_stated_prior():
    told = pooled(LessonEvidence())
    assert told.mean == pytest.approx(0)
    assert told.deviation == pytest.approx(0.162, abs=0.001)
    assert told.helps == pytest.approx(0.3)
    assert told.harms == pytest.approx(0.3)
    assert learned([]) == list(PRIOR)
    assert learned([LessonEvidence(), LessonEvidence()]) == list(PRIOR)


def test_a_family_that_helps_lends_hope_and_one_that_harms_takes_it():
    own = LessonEvidence(even(7, 5, 5, 7))
    good, alone, bad = pooled(own, families(0.3)), pooled(own), pooled(own, families(-0.3))
    assert good.helps > alone.helps > bad.helps
    assert good.mean > alone.mean > bad.mean
    assert good.harms < alone.harms < bad.harms


def test_its_own_runs_outweigh_the_family_in_the_end():
    assert pooled(LessonEvidence(stream(-0.3, 300, seed=2)), families(0.3)).harms > 0.95


def test_a_few_runs_are_drawn_towards_nothing():
    own = LessonEvidence(even(4, 1, 1, 4))
    assert 0 < pooled(own).mean < own.worth().estimate / 2


# -- the status of a lesson --------------------------------------------------------------------------------------------


def told(
    uses: Sequence[LessonOutcome], status: LessonStatus = LessonStatus.new, family: Sequence[LessonEvidence] = ()
) -> LessonStatus:
    return standing(status, LessonEvidence(uses), family=family).status


def when_decided(effect: float, seed: int, family: Sequence[LessonEvidence] = ()) -> tuple[LessonStatus, int]:
    evidence = LessonEvidence()
    for item in stream(effect, LAST + 1, seed):
        evidence.add(item)
        status = standing(LessonStatus.new, evidence, family=family).status
        if status is not LessonStatus.new:
            return status, evidence.uses
    return LessonStatus.new, evidence.uses


def test_one_that_helps_much_becomes_active():
    assert [when_decided(0.4, seed)[0] for seed in range(5)] == [LessonStatus.active] * 5


def test_one_that_harms_is_retired_before_the_trial_is_over():
    found = [when_decided(-0.4, seed) for seed in range(5)]
    assert [status for status, _ in found] == [LessonStatus.retired] * 5
    assert max(uses for _, uses in found) <= TRIAL


def test_one_that_shows_nothing_is_retired_in_the_end_whatever_its_family():
    for family in ([], families(0.3)):
        status, uses = when_decided(0.0, seed=6, family=family)
        assert status is LessonStatus.retired
        assert uses >= TRIAL


@pytest.mark.soak
def test_a_family_makes_it_active_sooner():
    alone = [when_decided(0.3, seed)[1] for seed in range(6)]
    together = [when_decided(0.3, seed, families(0.3))[1] for seed in range(6)]
    assert sum(together) < sum(alone)


def test_nothing_is_decided_by_a_handful_of_runs():
    few = even(0, FEWEST // 2, FEWEST // 2 - 1, 0)
    assert told(few, family=families(-0.4)) is LessonStatus.new
    assert told([*few, use(False, True), use(True, False)], family=families(-0.4)) is LessonStatus.retired


def test_an_active_one_that_turns_out_to_harm_is_retired():
    before = stream(0.4, 80, seed=1)
    assert told(before) is LessonStatus.active
    after = [*before, *stream(-0.4, 400, seed=2, base=0.5, p=0.9)]
    assert told(after, LessonStatus.active) is LessonStatus.retired


def test_one_that_saves_and_does_not_harm_becomes_active():
    uses = costly(0.15, 200, seed=3)
    found = standing(LessonStatus.new, LessonEvidence(uses), cost=LessonEvidence(uses, outcome=spent))
    assert found.status is LessonStatus.active
    assert "saves" in found.reason


def test_one_that_makes_runs_dearer_and_does_not_help_is_retired_before_its_trial_is_over():
    uses = costly(-0.3, 50, seed=4)
    found = standing(LessonStatus.new, LessonEvidence(uses), cost=LessonEvidence(uses, outcome=spent))
    assert (found.status, found.reason) == (LessonStatus.retired, "it makes runs more expensive: proven over 50 runs")
    assert standing(LessonStatus.new, LessonEvidence(uses)).status is LessonStatus.new


@pytest.mark.parametrize("status", [LessonStatus.retired, LessonStatus.quarantined])
def test_what_is_retired_or_in_quarantine_stays_there(status: LessonStatus):
    assert told(stream(0.4, 200, seed=1), status) is status


def test_the_reason_says_how_many_runs_it_rests_on():
    found = standing(LessonStatus.new, LessonEvidence(stream(0.4, 200, seed=1)))
    assert found.reason == "it helps: proven over 200 runs"
