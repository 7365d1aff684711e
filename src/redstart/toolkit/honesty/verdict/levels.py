"""The checks that a passing patch must undergo, by level."""

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
"""One variation at a time, so that a flake can be named by its cause. The zone is a day ahead of most others."""

REPEAT_VARIATIONS = {
    "hash seed": Variation(),
    "random seed": Variation(seed=20_260_115),
    "time zone": Variation(tz="Etc/GMT+12"),
    "order": Variation(order="shuffled", seed=7),
}
"""The same variations again, with other values."""


WEST = ("time zone", REPEAT_VARIATIONS["time zone"])
"""The author of a test in the Americas had yesterday's date where the first zone has tomorrow's."""


def _assign_hash_seeds(first_seed: int, *repeats: tuple[str, Variation]) -> tuple[tuple[str, Variation], ...]:
    """Give each repeat its own hash seed: any two strings have the same order in a set under half of all seeds."""
    return tuple(
        (name, variation._replace(hash_seed=first_seed + number)) for number, (name, variation) in enumerate(repeats)
    )


class Measures(NamedTuple):
    before: tuple[tuple[str, Variation], ...]
    """Repeats of the red tests on the untouched code."""
    after: tuple[tuple[str, Variation], ...]
    """Repeats of the targets on the patch."""
    fail_again: bool
    """Whether the targets run once more without the patch, where they must fail."""
    shrink_runs: int
    """The maximum number of runs to find out which parts of a patch are needed."""
    shrink_suites: float
    """The maximum time for the same, in multiples of the run time of the whole suite."""
    full_runs: int
    """Runs of the whole suite on the final patch."""
    controls: int
    """The maximum number of alterations of each target that must fail on the patched code."""
    is_extended: bool
    """Whether the targets also run at a distant date, and inputs near theirs are compared."""


MEASURES = {
    Level.quick: Measures(
        (), (), fail_again=False, shrink_runs=0, shrink_suites=0, full_runs=1, controls=4, is_extended=False
    ),
    Level.standard: Measures(
        _assign_hash_seeds(1, *VARIATIONS.items(), WEST),
        _assign_hash_seeds(101, *VARIATIONS.items()),
        fail_again=True,
        shrink_runs=20,
        shrink_suites=0.25,
        full_runs=1,
        controls=4,
        is_extended=True,
    ),
    Level.strict: Measures(
        _assign_hash_seeds(1, *VARIATIONS.items(), *REPEAT_VARIATIONS.items()),
        _assign_hash_seeds(101, *VARIATIONS.items(), *REPEAT_VARIATIONS.items()),
        fail_again=True,
        shrink_runs=60,
        shrink_suites=2,
        full_runs=2,
        controls=12,
        is_extended=True,
    ),
}

SHRINK_SECONDS = 20.0
"""The time always allowed for shrinking, however short the suite is."""


def estimate_seconds(level: Level, suite: float, targets: float) -> float:
    """Estimate the seconds that a proof takes, from the run times of the suite and of the targets alone."""
    measures = MEASURES[level]
    repeats = len(measures.after) + measures.fail_again + measures.controls + 1 + 3 * measures.is_extended
    shrinking = min(measures.shrink_runs * targets, max(measures.shrink_suites * suite, SHRINK_SECONDS))
    return measures.full_runs * suite + repeats * targets + shrinking * bool(measures.shrink_runs)
