"""Every check of a green, one after the other."""

from __future__ import annotations

from redstart.toolkit.honesty.assertion_counts import examine_assertions
from redstart.toolkit.honesty.controls.examine import examine_controls
from redstart.toolkit.honesty.examine import Examined, Green, Runs
from redstart.toolkit.honesty.expected_data import examine_data
from redstart.toolkit.honesty.levels import Measures
from redstart.toolkit.honesty.nearby import examine_nearby
from redstart.toolkit.honesty.neutral import examine_neutral
from redstart.toolkit.honesty.used_files import examine_files


async def examine(green: Green, runs: Runs, measures: Measures) -> list[Examined]:
    """What the checks of the level say, up to the first that refuses the patch."""
    results: list[Examined] = []
    results.append(await examine_controls(green, runs, rounds=measures.controls))
    if not _is_refused(results):
        results.append(await examine_neutral(green, runs, far=measures.far))
    if not _is_refused(results) and (used := await examine_files(green, runs)):
        results.append(used)
    if not _is_refused(results) and (asked := await examine_assertions(green, runs)):
        results.append(asked)
    if not _is_refused(results) and (data := await examine_data(green, runs)):
        results.append(data)
    if measures.far and not _is_refused(results):
        results.append(await examine_nearby(green, runs))
    return results


def _is_refused(results: list[Examined]) -> bool:
    return any(doubt.refuses for result in results for doubt in result.doubts)
