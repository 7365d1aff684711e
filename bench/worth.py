"""Whether the worth of lessons is measured rightly, on simulated lessons of known effect.

200 lessons in 40 families of 5 over 5,000 runs: 60 help (by 10, 20 or 30 points of green), 100 do nothing, 40 harm (by
10, 20 or 30). A run meets one family, and all of its lessons that are not retired fall their coin; so a lesson is seen
in 125 runs if it lives. In half of the families most lessons help, in the other half few do. The effects add up, and the
families are made so that no sum leaves 0 to 1: so each effect is known exactly. 3 % of the runs are flaky and set aside.

Regret is what the share of green is below that of showing exactly those that help. Beside it stand showing always and
never. Coverage is of single lessons looked at after each of 1,000 uses, with shares of green that drift and coins whose
probability follows what was seen. `--quick` has fewer worlds and lessons, and computes every figure.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

from redstart.core.lesson import Status, Use
from redstart.toolkit.learning.lessons import probability
from redstart.toolkit.learning.worth import Bets, Evidence, spent, standing

RUNS, FAMILIES, LESSONS = 5000, 40, 5
SIZES = (0.10, 0.20, 0.30)
HELPFUL, USELESS, HARMFUL = 60, 100, 40
FLAKY = 0.03


class World(NamedTuple):
    base: list[float]
    """The share of green in each family without any lesson."""
    effects: list[list[float]]
    """Of each family's lessons."""


class Ended(NamedTuple):
    status: list[list[Status]]
    regret: list[float]
    """Of each run, in points of green."""
    tokens: float
    """The share of lessons that applied and were shown."""
    uses: list[list[int]]


def made(chance: random.Random) -> World:
    """Drawn anew until every sum of effects stays within 0 to 1."""
    helpful = [SIZES[number % 3] for number in range(HELPFUL)]
    others = [0.0] * USELESS + [-SIZES[number % 3] for number in range(HARMFUL)]
    chance.shuffle(helpful)
    chance.shuffle(others)
    rich = FAMILIES // 2
    families: list[list[float]] = [[] for _ in range(FAMILIES)]
    for number, effect in enumerate(helpful):
        # four of five helpful ones are in the rich half
        families[number % rich if number % 5 else rich + number // 5 % rich].append(effect)
    for family in families:
        while len(family) < LESSONS:
            family.append(others.pop())
    base = [_base(chance, family) for family in families]
    return World(base, families)


def _base(chance: random.Random, family: Sequence[float]) -> float:
    low = 0.02 - sum(effect for effect in family if effect < 0)
    high = 0.98 - sum(effect for effect in family if effect > 0)
    if low > high:
        raise RuntimeError("a family's effects do not fit between 0 and 1")
    return chance.uniform(max(low, min(0.2, high)), min(high, max(0.6, low)))


def world(chance: random.Random) -> World:
    while True:
        try:
            return made(chance)
        except RuntimeError:
            continue


def lived(given: World, chance: random.Random, runs: int) -> Ended:
    """All runs, each lesson judged after each run that it applied to."""
    evidence = [[Evidence() for _ in family] for family in given.effects]
    status = [[Status.new for _ in family] for family in given.effects]
    regret: list[float] = []
    shown_all = applied_all = 0
    for _ in range(runs):
        here = chance.randrange(len(given.base))
        effects, states = given.effects[here], status[here]
        coins = [(number, probability(state)) for number, state in enumerate(states) if state is not Status.retired]
        shown = {number: chance.random() < p for number, p in coins}
        share = given.base[here] + sum(effects[number] for number, is_shown in shown.items() if is_shown)
        best = given.base[here] + sum(effect for effect in effects if effect > 0)
        regret.append(best - share)
        shown_all += sum(shown.values())
        applied_all += len(effects)
        green = None if chance.random() < FLAKY else chance.random() < share
        for number, p in coins:
            evidence[here][number].add(Use(probability=p, shown=shown[number], green=green))
        for number, _ in coins:
            family = [one for other, one in enumerate(evidence[here]) if other != number]
            states[number] = standing(states[number], evidence[here][number], family=family).status
    return Ended(status, regret, shown_all / applied_all, [[one.uses for one in row] for row in evidence])


class Tally(NamedTuple):
    by_effect: dict[float, Counter[Status]]
    regret: float
    regret_late: float
    """In the last fifth of the runs."""
    regret_always: float
    regret_never: float
    tokens: float


def tallied(worlds: int, runs: int, seed: int) -> Tally:
    by_effect: dict[float, Counter[Status]] = {}
    measured, late, always, never, tokens = [], [], [], [], []
    for number in range(worlds):
        chance = random.Random(seed + number)
        given = world(chance)
        ended = lived(given, chance, runs)
        for effects, states in zip(given.effects, ended.status, strict=True):
            for effect, state in zip(effects, states, strict=True):
                by_effect.setdefault(effect, Counter())[state] += 1
        measured.append(fmean(ended.regret))
        late.append(fmean(ended.regret[-runs // 5 :]))
        always.append(fmean(-sum(effect for effect in family if effect < 0) for family in given.effects))
        never.append(fmean(sum(effect for effect in family if effect > 0) for family in given.effects))
        tokens.append(ended.tokens)
    return Tally(by_effect, fmean(measured), fmean(late), fmean(always), fmean(never), fmean(tokens))


def share(tally: Tally, states: Sequence[Status], effects: Sequence[float]) -> float:
    found = [count for effect, count in tally.by_effect.items() if effect in effects]
    return sum(count[state] for count in found for state in states) / sum(count.total() for count in found)


def precision(tally: Tally, states: Sequence[Status]) -> float:
    """Of those that have such a state in the end, how many help."""
    have = {effect: sum(count[state] for state in states) for effect, count in tally.by_effect.items()}
    return sum(count for effect, count in have.items() if effect > 0) / max(sum(have.values()), 1)


# -- coverage ----------------------------------------------------------------------------------------------------------


def covered(chance: random.Random, effect: float, uses: int) -> bool:
    """Whether the interval held the effect at every look. The share of green drifts, and p follows what was seen."""
    evidence, bets = Evidence(), Bets(effect)
    greens = 0
    phase = chance.uniform(0, 2 * math.pi)
    for number in range(uses):
        p = 0.9 if evidence.above_zero or greens % 7 == 3 else 0.5
        middle = 0.5 + 0.25 * math.sin(phase + number / 80)
        shown = chance.random() < p
        green = chance.random() < middle + (effect / 2 if shown else -effect / 2)
        greens += green
        evidence.add(Use(probability=p, shown=shown, green=green))
        bets.settle(evidence.plays[-1])
        if bets.too_low or bets.too_high:
            return False
    return True
