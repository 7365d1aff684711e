"""Find the condition of a run that a flaky test depends on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from redstart.core.shell import PINNED, Variation

FindPassing = Callable[[Sequence[str], Variation], Awaitable[set[str]]]
"""Runs these tests under these conditions and returns those that pass."""
HASH_SEED = "hash seed"


async def find_conditions(flaky: Mapping[str, tuple[str, Variation]], find_passing: FindPassing) -> dict[str, str]:
    """Find what each flaky test depends on; empty for a test that also passes if nothing is varied.

    `flaky` has the variation in which each test passed, with its name. That rerun differs from the first run not only
    in the varied condition: the other tests are left out, chance plays a part, and the hash seed differs too. So the
    tests run with nothing varied, then with only the hash seed varied.
    """
    conditions = {id_: name for id_, (name, _) in flaky.items()}
    by_chance = await find_passing(sorted(flaky), PINNED)
    conditions |= dict.fromkeys(by_chance, "")
    for seed in sorted(
        {
            variation.hash_seed
            for _, variation in flaky.values()
            if variation != Variation(hash_seed=variation.hash_seed)
        }
    ):
        alike = sorted(
            id_ for id_, (_, variation) in flaky.items() if variation.hash_seed == seed and id_ not in by_chance
        )
        if alike:
            conditions |= dict.fromkeys(await find_passing(alike, Variation(hash_seed=seed)), HASH_SEED)
    return conditions
