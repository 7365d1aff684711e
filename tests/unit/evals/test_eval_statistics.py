"""Every formula is checked against a published example or by counting all cases."""

from __future__ import annotations

import itertools
import math
from statistics import stdev

import pytest

from redstart.evals.intervals import (
    Comparison,
    bootstrap,
    bootstrap_difference,
    compute_mcnemar_p,
    compute_paired_p,
    compute_percentile,
    compute_power,
    estimate_share,
    find_detectable_difference,
    pass_at,
    resample,
)

MICE = (94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0)
"""Survival times of the treated mice in Efron and Tibshirani, An Introduction to the Bootstrap (1993), table 2.1."""


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_matches_the_table_of_newcombe(successes: int, count: int, low: float, high: float) -> None:
    """Newcombe (1998), Statistics in Medicine 17, table I, method 3."""
    interval = estimate_share(successes, count)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    mirrored = estimate_share(count - successes, count)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - interval.high, 1 - interval.low))


@pytest.mark.parametrize(("successes", "count"), [(1, 0), (3, 2), (-1, 2)])
def test_invalid_share_is_rejected(successes: int, count: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        estimate_share(successes, count)


def test_bootstrap_spread_matches_the_published_one() -> None:
    """With many draws the standard error of the mean is 23.36 in the book's table, and 25.24 by its formula 2.2."""
    mean = bootstrap(MICE, draws=4000)
    assert mean.value == pytest.approx(86.86, abs=0.005)
    resampled = resample(MICE, lambda values: sum(values) / len(values), draws=20_000)
    assert stdev(resampled) == pytest.approx(23.36, rel=0.03)
    assert mean.low < mean.value < mean.high
    assert (mean.high - mean.low) / (2 * 1.96) == pytest.approx(23.36, rel=0.1)


def test_bootstrap_interval_depends_only_on_the_seed() -> None:
    assert bootstrap(MICE, seed=3) == bootstrap(MICE, seed=3)
    assert bootstrap(MICE, seed=3) != bootstrap(MICE, seed=4)
    with pytest.raises(ValueError, match="no values"):
        bootstrap([])


def test_percentiles_are_interpolated() -> None:
    assert [compute_percentile([1.0, 2.0, 4.0], share) for share in (0, 0.25, 0.5, 0.75, 1)] == [1, 1.5, 2, 3, 4]


@pytest.mark.parametrize(("count", "correct", "draws"), [(5, 2, 1), (5, 2, 3), (6, 0, 2), (6, 6, 2), (7, 3, 7)])
def test_pass_at_k_matches_enumeration_of_all_draws(count: int, correct: int, draws: int) -> None:
    runs = [number < correct for number in range(count)]
    all_draws = list(itertools.combinations(runs, draws))
    assert pass_at(count, correct, draws) == pytest.approx(sum(map(any, all_draws)) / len(all_draws))


def test_drawing_more_runs_than_exist_is_rejected() -> None:
    with pytest.raises(ValueError, match="cannot be drawn"):
        pass_at(3, 1, 4)


def test_mcnemar_matches_published_values() -> None:
    """12 and 5 discordant pairs: exact p = 0.1435 (the worked steps of the calculator at stat-tools.xyz).

    3 of 14: one-tailed p = 0.029 (the sign test in Siegel, Nonparametric Statistics, 1956).
    """
    assert round(compute_mcnemar_p(12, 5), 4) == 0.1435
    assert round(compute_mcnemar_p(3, 11) / 2, 3) == 0.029
    assert compute_mcnemar_p(121, 59) == compute_mcnemar_p(59, 121) < 0.001
    assert compute_mcnemar_p(0, 0) == compute_mcnemar_p(4, 4) == 1.0


@pytest.mark.parametrize(("only_a", "only_b"), [(0, 0), (0, 5), (3, 11), (6, 16), (4, 4), (9, 2)])
def test_sign_test_equals_mcnemar_with_one_run_per_task(only_a: int, only_b: int) -> None:
    differences = [-1] * only_a + [1] * only_b + [0] * 7
    assert compute_paired_p(differences) == pytest.approx(compute_mcnemar_p(only_a, only_b))


def test_sign_test_enumerates_all_signs_with_several_runs() -> None:
    differences = [3, -1, 2, 0, 1, -2]
    observed = abs(sum(differences))
    signs = itertools.product((1, -1), repeat=len(differences))
    all_sums = [sum(sign * item for sign, item in zip(sign_choice, differences, strict=True)) for sign_choice in signs]
    assert compute_paired_p(differences) == pytest.approx(
        sum(abs(item) >= observed for item in all_sums) / len(all_sums)
    )


def test_impossible_shares_are_rejected() -> None:
    with pytest.raises(ValueError, match="is impossible"):
        compute_power(23, 0.1, 0.2)


def test_power_counts_every_outcome() -> None:
    """All ways in which 6 pairs can end, each with its probability."""
    probabilities = {1: 0.6, -1: 0.05, 0: 0.35}
    expected_power = 0.0
    for ends in itertools.product(probabilities, repeat=6):
        wins, losses = ends.count(1), ends.count(-1)
        if wins > losses and compute_mcnemar_p(losses, wins) <= 0.05:
            expected_power += math.prod(probabilities[end] for end in ends)
    assert compute_power(6, 0.65, 0.55) == pytest.approx(expected_power)
    assert expected_power > 0.01


@pytest.mark.slow
def test_power_at_the_approximate_number_of_pairs_is_near_the_goal() -> None:
    """The exact test is a little more careful than the approximation: 234 pairs for 80 %, after Connor (1987)."""
    pairs = 234
    assert 0.74 < compute_power(pairs, 0.3, 0.1) < 0.81
    assert compute_power(pairs + 100, 0.3, 0.1) > compute_power(pairs, 0.3, 0.1)


def test_detectable_difference_has_the_requested_power() -> None:
    difference = find_detectable_difference(150, 0.3)
    assert difference is not None
    assert compute_power(150, 0.3, difference) >= 0.8 > compute_power(150, 0.3, difference - 0.005)
    assert find_detectable_difference(5, 0.3) is None
    assert find_detectable_difference(0, 0.3) is None


def test_comparison_states_which_difference_would_be_missed() -> None:
    gap = bootstrap_difference([0, 1, 0, 1], [1, 1, 0, 1])
    comparison = Comparison(tasks=4, pairs=4, only_a=0, only_b=1, both=2, difference=gap, p=1.0, detectable=0.4)
    assert "no difference is shown (+25.0 points" in comparison.words
    assert "less than 40 points would often be missed" in comparison.words
    assert comparison.model_copy(update={"p": 0.01}).words.startswith("B is better by 25.0 points")
    with pytest.raises(ValueError, match="zip"):
        bootstrap_difference([1], [1, 2])
