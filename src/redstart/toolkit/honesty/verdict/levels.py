"""What is run before a green counts, by level."""

from __future__ import annotations

from typing import NamedTuple

from redstart.core.run import Level
from redstart.core.shell import Variation

VARIATIONS = {
    "hash seed": Variation(),
    "random seed": Variation(seed=1),
    "time zone": Variation(tz="Pacific/Kiritimati"),
    "order": Variation(order="reversed"),
}
"""One thing at a time, so that a flake is named by what it depends on. The zone is a day ahead of most others."""

AGAIN = {
    "hash seed": Variation(),
    "random seed": Variation(seed=20_260_115),
    "time zone": Variation(tz="Etc/GMT+12"),
    "order": Variation(order="shuffled", seed=7),
}
"""The same things once more, otherwise."""


WEST = ("time zone", AGAIN["time zone"])
"""Whoever wrote a test in the Americas had yesterday's date where the first zone has tomorrow's."""


def _hashed(first: int, *repeats: tuple[str, Variation]) -> tuple[tuple[str, Variation], ...]:
    """The same, each with a hash seed of its own: two strings lie the same way round in a set with every second one."""
    return tuple((name, vary._replace(hash_seed=first + number)) for number, (name, vary) in enumerate(repeats))


class Measures(NamedTuple):
    before: tuple[tuple[str, Variation], ...]
    """Repeats of the red tests on the untouched code."""
    after: tuple[tuple[str, Variation], ...]
    """Repeats of the targets on the patch."""
    fail_again: bool
    """Whether the targets are seen red once more without the patch."""
    shrink_runs: int
    """Runs at the most for finding out what of a patch is needed."""
    shrink_suites: float
    """For the same: time at the most, in times of the whole suite."""
    full_runs: int
    """Runs of the whole suite on the final patch."""
    controls: int
    """Alterations of each target, at the most, that the patched code must fail."""
    far: bool
    """Whether the targets also run at a distant date, and inputs near theirs are compared."""


MEASURES = {
    Level.quick: Measures((), (), fail_again=False, shrink_runs=0, shrink_suites=0, full_runs=1, controls=4, far=False),
    Level.standard: Measures(
        _hashed(1, *VARIATIONS.items(), WEST),
        _hashed(101, *VARIATIONS.items()),
        fail_again=True,
        shrink_runs=20,
        shrink_suites=0.25,
        full_runs=1,
        controls=4,
        far=True,
    ),
    Level.strict: Measures(
        _hashed(1, *VARIATIONS.items(), *AGAIN.items()),
        _hashed(101, *VARIATIONS.items(), *AGAIN.items()),
        fail_again=True,
        shrink_runs=60,
        shrink_suites=2,
        full_runs=2,
        controls=12,
        far=True,
    ),
}

SHRINK_SECONDS = 20.0
"""May always be spent on shrinking, however short the suite is."""


def forecast(level: Level, suite: float, targets: float) -> float:
    """Seconds that the proof of a green takes, from how long the suite and the targets alone take."""
    measures = MEASURES[level]
    repeats = len(measures.after) + measures.fail_again + measures.controls + 1 + 3 * measures.far
    shrinking = min(measures.shrink_runs * targets, max(measures.shrink_suites * suite, SHRINK_SECONDS))
    return measures.full_runs * suite + repeats * targets + shrinking * bool(measures.shrink_runs)
