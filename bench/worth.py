"""Whether the effects of lessons are measured correctly, on simulated lessons with known effects.

There are 200 lessons in 40 families of 5 over 5,000 runs: 60 help (by 10, 20 or 30 points of solve rate), 100 do
nothing, 40 harm (by 10, 20 or 30 points). A run meets one family, and a coin is flipped for each of its lessons that is
not retired; so a lesson applies to 125 runs if it survives. Four of five helpful lessons are in one half of the
families. The effects add up, and the families are made so that no sum leaves 0 to 1, so each effect is known exactly.
3% of the runs are flaky and set aside.

Regret is the distance, in points, between the solve rate and that of showing exactly the helpful lessons. It is
reported beside the regret of showing lessons always and never. Coverage is measured on single lessons, checked after
each of 1,000 uses, with drifting solve rates and coins whose probability follows the observations. The number of runs
that a lesson needs is counted in runs to which it applied. `--quick` has fewer worlds and lessons, and computes every
figure.
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from _figures import Figure, expect_at_least, expect_at_most, print_figures, report_value
from redstart.core.lesson import LessonOutcome, LessonStatus
from redstart.toolkit.learning.lesson_effect import BettingCapital, LessonEvidence, decide_lesson_status
from redstart.toolkit.learning.lessons import get_show_probability

RUNS, FAMILIES, LESSONS = 5000, 40, 5
SIZES = (0.10, 0.20, 0.30)
HELPFUL, USELESS, HARMFUL = 60, 100, 40
FLAKY = 0.03
BASE = 0.4
"""The solve rate without the lesson, in simulations of single lessons."""
KEPT = (LessonStatus.new, LessonStatus.active)


class Size(NamedTuple):
    """The size of the simulation."""

    worlds: int
    long_runs: int
    streams: int
    looks: int
    lives: int
    most: int
    """Uses after which the simulation stops waiting for a proof."""


FULL = Size(worlds=8, long_runs=20_000, streams=1000, looks=1000, lives=100, most=4000)
QUICK = Size(worlds=5, long_runs=20_000, streams=300, looks=400, lives=25, most=2500)


# -- 200 lessons -------------------------------------------------------------------------------------------------------


class World(NamedTuple):
    base: list[float]
    """The solve rate in each family without any lesson."""
    effects: list[list[float]]
    """The effects of each family's lessons."""


class Ended(NamedTuple):
    status: list[list[LessonStatus]]
    regret: list[float]
    """The regret of each run."""
    shown: float
    """The share of applicable lessons that were shown."""


def create_world(chance: random.Random) -> World:
    """Deal effects until every family fits between 0 and 1."""
    while True:
        families = _deal_effects(chance)
        bounds = [(0.02 - _sum(family, -1), 0.98 - _sum(family, 1)) for family in families]
        if all(low <= high for low, high in bounds):
            base = [chance.uniform(max(low, min(0.2, high)), min(high, max(0.6, low))) for low, high in bounds]
            return World(base, families)


def _sum(family: Sequence[float], sign: int) -> float:
    return sum(effect for effect in family if effect * sign > 0)


def _deal_effects(chance: random.Random) -> list[list[float]]:
    helpful = [SIZES[number % 3] for number in range(HELPFUL)]
    other_effects = [0.0] * USELESS + [-SIZES[number % 3] for number in range(HARMFUL)]
    chance.shuffle(helpful)
    chance.shuffle(other_effects)
    half = FAMILIES // 2
    families: list[list[float]] = [[] for _ in range(FAMILIES)]
    for number, effect in enumerate(helpful):
        families[number % half if number % 5 else half + number // 5 % half].append(effect)
    for family in families:
        while len(family) < LESSONS:
            family.append(other_effects.pop())
    return families


def simulate_runs(simulated: World, chance: random.Random, runs: int) -> Ended:
    """Simulate all runs; judge each lesson after every run to which it applied."""
    evidence = [[LessonEvidence() for _ in family] for family in simulated.effects]
    status = [[LessonStatus.new for _ in family] for family in simulated.effects]
    regret: list[float] = []
    shown_count = 0
    for _ in range(runs):
        family_index = chance.randrange(FAMILIES)
        effects, states = simulated.effects[family_index], status[family_index]
        coins = [
            (number, get_show_probability(state))
            for number, state in enumerate(states)
            if state is not LessonStatus.retired
        ]
        shown = {number: chance.random() < p for number, p in coins}
        share = simulated.base[family_index] + sum(effects[number] for number, is_shown in shown.items() if is_shown)
        regret.append(simulated.base[family_index] + _sum(effects, 1) - share)
        shown_count += sum(shown.values())
        passed = None if chance.random() < FLAKY else chance.random() < share
        for number, p in coins:
            evidence[family_index][number].add(LessonOutcome(probability=p, shown=shown[number], green=passed))
        for number, _ in coins:
            family = [item for index, item in enumerate(evidence[family_index]) if index != number]
            states[number] = decide_lesson_status(states[number], evidence[family_index][number], family=family).status
    return Ended(status, regret, shown_count / runs / LESSONS)


class Tally(NamedTuple):
    by_effect: dict[float, Counter[LessonStatus]]
    regret: float
    late: float
    """Regret in the last fifth of the runs."""
    always: float
    never: float
    shown: float


def tally_worlds(worlds: int, runs: int, seed: int) -> Tally:
    by_effect: dict[float, Counter[LessonStatus]] = {}
    rows: list[tuple[float, ...]] = []
    for number in range(worlds):
        chance = random.Random(seed + number)
        simulated = create_world(chance)
        result = simulate_runs(simulated, chance, runs)
        for effects, states in zip(simulated.effects, result.status, strict=True):
            for effect, state in zip(effects, states, strict=True):
                by_effect.setdefault(effect, Counter())[state] += 1
        always = fmean(-_sum(family, -1) for family in simulated.effects)
        never = fmean(_sum(family, 1) for family in simulated.effects)
        rows.append((fmean(result.regret), fmean(result.regret[-runs // 5 :]), always, never, result.shown))
    return Tally(by_effect, *(fmean(column) for column in zip(*rows, strict=True)))


def share(tally: Tally, states: Sequence[LessonStatus], effects: Sequence[float]) -> float:
    counts = [count for effect, count in tally.by_effect.items() if effect in effects]
    return sum(count[state] for count in counts for state in states) / sum(count.total() for count in counts)


def compute_precision(tally: Tally, states: Sequence[LessonStatus]) -> float:
    """Return the share of helpful lessons among those that end with one of these states."""
    counts_by_effect = {effect: sum(count[state] for state in states) for effect, count in tally.by_effect.items()}
    return sum(count for effect, count in counts_by_effect.items() if effect > 0) / max(
        sum(counts_by_effect.values()), 1
    )


def print_table(tally: Tally, runs: int) -> None:
    print(f"after {runs:,} runs: effect, and the shares that are new, active, retired")
    for effect, count in sorted(tally.by_effect.items()):
        print(
            f"  {100 * effect:+4.0f}  "
            + "  ".join(f"{count[state] / count.total():.2f}" for state in (*KEPT, LessonStatus.retired))
        )
    print(
        f"  regret in points: {100 * tally.regret:.1f}, in the last fifth {100 * tally.late:.1f}; "
        f"always {100 * tally.always:.1f}, never {100 * tally.never:.1f}; shown {tally.shown:.2f} of all"
    )


# -- one lesson, looked at after every run -----------------------------------------------------------------------------


class Looked(NamedTuple):
    covered: bool
    """Whether the interval held the effect at every check."""
    above: bool
    """Whether the lesson was ever called helpful."""
    peeked: bool
    """Whether a plain 95% interval was ever above 0, checked from the 20th use on."""


def simulate_checks(chance: random.Random, effect: float, check_count: int, *, is_drifting: bool = False) -> Looked:
    """Simulate one lesson. The solve rate drifts, and the probability of the coin follows the observations. If
    `is_drifting`, the effect drifts too, between -0.2 and 0."""
    evidence, bets = LessonEvidence(), BettingCapital(effect)
    covered, above_now, was_above, peeked = True, False, False, False
    pass_count = 0
    arms = {True: [0, 0], False: [0, 0]}
    phase = chance.uniform(0, 2 * math.pi)
    for number in range(check_count):
        p = 0.9 if above_now or pass_count % 7 == 3 else 0.5
        middle = 0.5 + 0.25 * math.sin(phase + number / 80)
        current_effect = min(0.0, 0.2 * math.sin(phase + number / 30)) if is_drifting else effect
        shown = chance.random() < p
        passed = chance.random() < middle + (current_effect / 2 if shown else -current_effect / 2)
        pass_count += passed
        evidence.add(LessonOutcome(probability=p, shown=shown, green=passed))
        bets.settle(evidence.plays[-1])
        above_now = evidence.above_zero
        was_above = was_above or above_now
        arms[shown][0] += 1
        arms[shown][1] += passed
        peeked = peeked or (number >= 20 and _is_plainly_above(arms))
        covered = covered and not (bets.too_low or bets.too_high)
    return Looked(covered, was_above, peeked)


def _is_plainly_above(arms: dict[bool, list[int]]) -> bool:
    (shown_count, shown_passes), (withheld_count, withheld_passes) = arms[True], arms[False]
    if not shown_count or not withheld_count:
        return False
    shown_rate, withheld_rate = shown_passes / shown_count, withheld_passes / withheld_count
    return (
        shown_rate - withheld_rate
        > 1.96
        * math.sqrt(shown_rate * (1 - shown_rate) / shown_count + withheld_rate * (1 - withheld_rate) / withheld_count)
        > 0
    )


# -- how many runs a lesson needs --------------------------------------------------------------------------------------


def count_uses_until_proven(effect: float, chance: random.Random, limit: int) -> int:
    evidence = LessonEvidence()
    while not evidence.above_zero and evidence.uses < limit:
        shown = chance.random() < 0.5
        evidence.add(LessonOutcome(probability=0.5, shown=shown, green=chance.random() < BASE + effect * shown))
    return evidence.uses


class Life(NamedTuple):
    status: LessonStatus
    uses: int


def simulate_life(effect: float, chance: random.Random, siblings: int, sibling_effect: float) -> Life:
    """Simulate a lesson until it is no longer new. Its siblings have the effect `sibling_effect` and apply to other
    runs, one for each run of the lesson."""
    evidence = [LessonEvidence() for _ in range(siblings + 1)]
    states = [LessonStatus.new] * len(evidence)
    while states[0] is LessonStatus.new:
        for number, item in enumerate(evidence):
            p = get_show_probability(states[number])
            shown = chance.random() < p
            if p:
                passed = chance.random() < BASE + (sibling_effect if number else effect) * shown
                item.add(LessonOutcome(probability=p, shown=shown, green=passed))
        for number, item in enumerate(evidence):
            family = [other for other in evidence if other is not item]
            states[number] = decide_lesson_status(states[number], item, family=family).status
    return Life(states[0], evidence[0].uses)


def measure_needs(effect: float, size: Size) -> dict[str, float]:
    """Return the median uses until a lesson is proven, active alone, and active with its family, and the share of
    lessons that become active."""
    name = f"{100 * effect:.0f}"
    results: dict[str, float] = {}
    proofs = [count_uses_until_proven(effect, random.Random(seed), size.most) for seed in range(size.lives)]
    results[f"uses_{name}_proven"] = median(proofs)
    for label, siblings in (("alone", 0), ("pooled", LESSONS - 1)):
        lives = [simulate_life(effect, random.Random(seed), siblings, effect) for seed in range(size.lives)]
        active_uses = [live.uses for live in lives if live.status is LessonStatus.active]
        results[f"uses_{name}_{label}"] = median(active_uses) if active_uses else math.inf
        results[f"active_{name}_{label}"] = len(active_uses) / len(lives)
    return results


# -- all of it ---------------------------------------------------------------------------------------------------------


def measure_many_lessons(size: Size) -> list[Figure]:
    tally = tally_worlds(size.worlds, RUNS, seed=1)
    print_table(tally, RUNS)
    long = tally_worlds(max(size.worlds // 4, 1), size.long_runs, seed=5001)
    print_table(long, size.long_runs)
    harmful = [-siz for siz in SIZES]
    return [
        expect_at_least("harmful_retired", share(tally, (LessonStatus.retired,), harmful), 0.95),
        expect_at_least("useless_retired", share(tally, (LessonStatus.retired,), (0.0,)), 0.80),
        expect_at_least("helpful_20_30_kept", share(tally, KEPT, SIZES[1:]), 0.85),
        report_value("helpful_10_kept", share(tally, KEPT, SIZES[:1])),
        expect_at_least("precision_active", compute_precision(tally, (LessonStatus.active,)), 0.90),
        report_value("precision_kept", compute_precision(tally, KEPT)),
        report_value("recall_active", share(tally, (LessonStatus.active,), SIZES)),
        report_value("recall_kept", share(tally, KEPT, SIZES)),
        expect_at_most("regret", tally.regret, min(tally.always, tally.never)),
        expect_at_most("regret_late", tally.late, min(tally.always, tally.never)),
        report_value("regret_always", tally.always),
        report_value("regret_never", tally.never),
        report_value("shown", tally.shown),
        expect_at_least("long_useless_retired", share(long, (LessonStatus.retired,), (0.0,)), 0.95),
        expect_at_least("long_harmful_retired", share(long, (LessonStatus.retired,), harmful), 0.95),
        report_value("long_recall_kept", share(long, KEPT, SIZES)),
        report_value("long_precision_active", compute_precision(long, (LessonStatus.active,))),
        report_value("long_regret_late", long.late),
    ]


def measure_coverage(size: Size) -> list[Figure]:
    effects = (0.0, 0.1, 0.3, -0.2)
    all_results = {
        effect: [simulate_checks(random.Random(s), effect, size.looks) for s in range(size.streams)]
        for effect in effects
    }
    by_effect = {effect: fmean(item.covered for item in results) for effect, results in all_results.items()}
    for effect, covered in by_effect.items():
        print(
            f"checked after each of {size.looks} uses, {100 * effect:+.0f} points: covered at all checks {covered:.4f}"
        )
    drifting_results = [
        simulate_checks(random.Random(s), 0.0, size.looks, is_drifting=True) for s in range(size.streams)
    ]
    return [
        expect_at_least("coverage", min(by_effect.values()), 0.94),
        expect_at_most("useless_proven_helpful", fmean(item.above for item in all_results[0.0]), 0.025),
        expect_at_most("never_helpful_proven_helpful", fmean(item.above for item in drifting_results), 0.025),
        report_value("useless_helpful_by_plain_peeking", fmean(item.peeked for item in all_results[0.0])),
    ]


def report_needs(size: Size) -> list[Figure]:
    results = {**measure_needs(0.10, size), **measure_needs(0.30, size)}
    for label, siblings in (("alone", 0), ("among_helpful", LESSONS - 1)):
        lives = [simulate_life(0.0, random.Random(seed), siblings, 0.30) for seed in range(size.lives)]
        results[f"useless_active_{label}"] = fmean(live.status is LessonStatus.active for live in lives)
    for name, value in results.items():
        print(f"{name}: {value:.4g}")
    return [report_value(name, value) for name, value in results.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    size = QUICK if parser.parse_args().quick else FULL
    figures = [*measure_many_lessons(size), *measure_coverage(size), *report_needs(size)]
    print_figures("worth", figures)


if __name__ == "__main__":
    main()
