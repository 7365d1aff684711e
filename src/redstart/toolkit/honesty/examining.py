"""Every check of a green, one after the other."""

from __future__ import annotations

from redstart.toolkit.honesty.controls.examine import examine_controls
from redstart.toolkit.honesty.examine import Examined, Green, Runs
from redstart.toolkit.honesty.levels import Measures


async def examine(green: Green, runs: Runs, measures: Measures) -> list[Examined]:
    """What the checks of the level say, up to the first that refuses the patch."""
    results: list[Examined] = []
    for check in (examine_controls(green, runs, rounds=measures.controls),):
        results.append(await check)
        if any(doubt.refuses for doubt in results[-1].doubts):
            break
    return results
