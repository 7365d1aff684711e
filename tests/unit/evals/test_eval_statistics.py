"""Every formula is checked against a published example or by counting all cases."""

from __future__ import annotations

import itertools
import math
from statistics import stdev

import pytest

from redstart.evals.intervals import (
    Comparison,
    bootstrap,
    detectable,
    exact_paired,
    mcnemar,
    paired_bootstrap,
    pass_at,
    percentile,
    power_of,
    resamples,
    wilson,
)

MICE = (94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0)
"""Survival times of the treated mice in Efron and Tibshirani, An Introduction to the Bootstrap (1993), table 2.1."""


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_gives_what_newcombe_lists(successes: int, count: int, low: float, high: float) -> None:
    """Newcombe (1998), Statistics in Medicine 17, table I, method 3."""
    found = wilson(successes, count)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    mirrored = wilson(count - successes, count)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low))


@pytest.mark.parametrize(("successes", "count"), [(1, 0), (3, 2), (-1, 2)])
def test_what_is_no_share_is_refused(successes: int, count: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson(successes, count)


def test_the_bootstrap_spreads_as_the_published_one_does() -> None:
    """With many draws the standard error of the mean is 23.36 in the book's table, and 25.24 by its formula 2.2."""
    mean = bootstrap(MICE, draws=4000)
    assert mean.value == pytest.approx(86.86, abs=0.005)
    drawn = resamples(MICE, lambda values: sum(values) / len(values), draws=20_000)
    assert stdev(drawn) == pytest.approx(23.36, rel=0.03)
    assert mean.low < mean.value < mean.high
    assert (mean.high - mean.low) / (2 * 1.96) == pytest.approx(23.36, rel=0.1)


def test_the_same_seed_gives_the_same_interval_and_another_gives_another() -> None:
    assert bootstrap(MICE, seed=3) == bootstrap(MICE, seed=3)
    assert bootstrap(MICE, seed=3) != bootstrap(MICE, seed=4)
    with pytest.raises(ValueError, match="no values"):
        bootstrap([])


def test_percentiles_lie_between_the_values() -> None:
    assert [percentile([1.0, 2.0, 4.0], share) for share in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]


@pytest.mark.parametrize(("count", "correct", "draws"), [(5, 2, 1), (5, 2, 3), (6, 0, 2), (6, 6, 2), (7, 3, 7)])
def test_pass_at_k_is_the_share_of_all_draws_with_a_right_one(count: int, correct: int, draws: int) -> None:
    runs = [number < correct for number in range(count)]
    every = list(itertools.combinations(runs, draws))
    assert pass_at(count, correct, draws) == pytest.approx(sum(map(any, every)) / len(every))


def test_more_runs_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="cannot be drawn"):
        pass_at(3, 1, 4)


def test_mcnemar_is_as_published() -> None:
    """12 and 5 discordant pairs: exact p = 0.1435 (the worked steps of the calculator at stat-tools.xyz).

    3 of 14: one-tailed p = 0.029 (the sign test in Siegel, Nonparametric Statistics, 1956).
    """
    assert round(mcnemar(12, 5), 4) == 0.1435
    assert round(mcnemar(3, 11) / 2, 3) == 0.029
    assert mcnemar(121, 59) == mcnemar(59, 121) < 0.001
    assert mcnemar(0, 0) == mcnemar(4, 4) == 1.0


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (0, 5), (3, 11), (6, 16), (4, 4), (9, 2)])
def test_with_one_run_a_task_the_test_of_signs_is_mcnemars(only_a: int, only_b: int) -> None:
    differences = [-1] * only_a + [1] * only_b + [0] * 7
    assert exact_paired(differences) == pytest.approx(mcnemar(only_a, only_b))


def test_with_several_runs_it_counts_all_choices_of_signs() -> None:
    differences = [3, -1, 2, 0, 1, -2]
    seen = abs(sum(differences))
    signs = itertools.product((1, -1), repeat=len(differences))
    every = [sum(sign * item for sign, item in zip(chosen, differences, strict=True)) for chosen in signs]
    assert exact_paired(differences) == pytest.approx(sum(abs(item) >= seen for item in every) / len(every))


def test_shares_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="is impossible"):
        power_of(23, 0.1, 0.2)


def test_power_counts_every_outcome() -> None:
    """All ways in which 6 pairs can end, each with its probability."""
    chances = {1: 0.6, -1: 0.05, 0: 0.35}
    told = 0.0
    for ends in itertools.product(chances, repeat=6):
        ours, theirs = ends.count(1), ends.count(-1)
        if ours > theirs and mcnemar(theirs, ours) <= 0.05:
            told += math.prod(chances[end] for end in ends)
    assert power_of(6, 0.65, 0.55) == pytest.approx(told)
    assert told > 0.01


@pytest.mark.slow
def test_power_at_the_approximate_number_of_pairs_is_near_what_was_asked() -> None:
    """The exact test is a little more careful than the approximation: 234 pairs for 80 %, after Connor (1987)."""
    pairs = 234
    assert 0.74 < power_of(pairs, 0.3, 0.1) < 0.81
    assert power_of(pairs + 100, 0.3, 0.1) > power_of(pairs, 0.3, 0.1)


def test_the_detectable_difference_has_the_power_that_is_asked() -> None:
    found = detectable(150, 0.3)
    assert found is not None
    assert power_of(150, 0.3, found) >= 0.8 > power_of(150, 0.3, found - 0.005)
    assert detectable(5, 0.3) is None
    assert detectable(0, 0.3) is None


def test_a_comparison_says_what_would_be_missed() -> None:
    gap = paired_bootstrap([0, 1, 0, 1], [1, 1, 0, 1])
    plain = Comparison(tasks=4, pairs=4, only_a=0, only_b=1, both=2, difference=gap, p=1.0, detectable=0.4)
    assert "no difference is shown (+25.0 points" in plain.words
    assert "less than 40 points would often be missed" in plain.words
    assert plain.model_copy(update={"p": 0.01}).words.startswith("B is better by 25.0 points")
    with pytest.raises(ValueError, match="zip"):
        paired_bootstrap([1], [1, 2])
