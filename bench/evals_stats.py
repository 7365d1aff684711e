"""Whether the statistics of `redstart eval` keep their promises, on simulated agents.

The bench simulates 10,000 pairs of equal agents on 150 tasks each and counts how often one is called better. For as
many pairs in which B is better by 10 points, it counts how often the difference is detected, beside the theoretical
power. It also compares pass@k with a count over all possible draws. `--quick` makes 1,000 pairs.

Tasks differ in difficulty, and two agents find the same tasks hard, so that pairs correlate as real agents do.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from functools import cache

from _figures import Figure, expect_at_most, print_figures, report_value
from redstart.evals.intervals import ALPHA, compute_mcnemar_p, compute_power, find_detectable_difference, pass_at

TASKS = 150
EASY, HARD = 0.85, 0.15
"""The chances to solve an easy and a hard task; a task is equally likely to be easy or hard."""
GAIN = 0.10
chance_of = cache(compute_mcnemar_p)


def simulate_pair(chance: random.Random, gain: float) -> tuple[int, int]:
    """Simulate a pair of agents on all tasks. Return how many only A solved, and how many only B solved."""
    only_a = only_b = 0
    for _ in range(TASKS):
        share = chance.choice((EASY, HARD))
        a_solves, b_solves = chance.random() < share, chance.random() < share + gain
        only_a += a_solves and not b_solves
        only_b += b_solves and not a_solves
    return only_a, only_b


def simulate_pairs(pairs: int, gain: float, seed: int) -> float:
    """Return the share of pairs in which B is called better."""
    chance = random.Random(seed)
    results = (simulate_pair(chance, gain) for _ in range(pairs))
    return sum(b > a and chance_of(a, b) <= ALPHA for a, b in results) / pairs


def compare_with_theory(gain: float) -> tuple[float, float]:
    """Return the exact power, and the share of discordant pairs used to compute it."""
    shares = ((EASY, EASY + gain), (HARD, HARD + gain))
    discordant = sum(a * (1 - b) + b * (1 - a) for a, b in shares) / len(shares)
    return compute_power(TASKS, discordant, gain), discordant


def compute_largest_gap(limit: int) -> float:
    """Return the largest gap between the closed form of pass@k and a count of every draw."""
    gaps: list[float] = []
    for count in range(1, limit + 1):
        for correct, draws in itertools.product(range(count + 1), range(1, count + 1)):
            subsets = itertools.combinations([number < correct for number in range(count)], draws)
            hits = [any(item) for item in subsets]
            gaps.append(abs(pass_at(count, correct, draws) - sum(hits) / len(hits)))
    return max(gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    pairs = 1000 if parser.parse_args().quick else 10_000
    false_better = simulate_pairs(pairs, 0.0, seed=1)
    power = simulate_pairs(pairs, GAIN, seed=2)
    expected, discordant = compare_with_theory(GAIN)
    error = 3 * math.sqrt(expected * (1 - expected) / pairs)
    smallest = find_detectable_difference(TASKS, discordant)
    print(f"{pairs} pairs of equal agents on {TASKS} tasks: {false_better:.4f} called better")
    print(f"B better by {100 * GAIN:.0f} points: detected in {power:.4f}, theory {expected:.4f}")
    print(
        f"with {discordant:.2f} of the pairs discordant, {TASKS} tasks show {100 * (smallest or 0):.1f} points or more"
    )
    gap = compute_largest_gap(7 if pairs == 1000 else 9)
    figures = [
        expect_at_most("false_better", false_better, ALPHA),
        Figure("power_simulated", power, f"{expected:.4f} +- {error:.4f}", abs(power - expected) <= error),
        report_value("power_theory", expected),
        Figure("pass_at_k_gap", round(gap, 5), "< 1e-12", gap < 1e-12),
    ]
    print_figures("evals_stats", figures)


if __name__ == "__main__":
    main()
