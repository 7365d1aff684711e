"""Runs every check of a passing patch, one after the other."""

from __future__ import annotations

from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.controls.examine import examine_controls
from redstart.toolkit.honesty.controls.subjects import is_chosen
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch
from redstart.toolkit.honesty.expected_data import examine_data
from redstart.toolkit.honesty.neutral import examine_neutral
from redstart.toolkit.honesty.used_files import examine_files
from redstart.toolkit.honesty.verdict.levels import Measures
from redstart.toolkit.languages.registry import language_of_runner

NOT_COMPARED = "compared in Python only"


async def examine(green: GreenPatch, runs: CheckRuns, measures: Measures) -> list[CheckOutcome]:
    """Run the checks of the level, up to the first that refuses the patch."""
    results: list[CheckOutcome] = []
    results.append(await examine_controls(green, runs, rounds=measures.controls))
    if not _is_refused(results):
        results.append(await examine_neutral(green, runs, far=measures.far))
    if not _is_refused(results) and (used := await examine_files(green, runs)):
        results.append(used)
    language = language_of_runner(green.suite.runner)
    checks = language.green_checks if language else None
    if checks and not _is_refused(results) and (asked := await checks.examine_assertions(green, runs)):
        results.append(asked)
    if not _is_refused(results) and (data := await examine_data(green, runs)):
        results.append(data)
    if measures.far and not _is_refused(results):
        results.append(await checks.examine_nearby(green, runs) if checks else _not_compared(green))
    return results


def _not_compared(green: GreenPatch) -> CheckOutcome:
    cases = {case.id for case in green.after or green.before if is_chosen(case.id, green.targets)}
    evidence = CheckEvidence(check="nearby", targets=len(cases or set(green.targets)), covered=0, notes=(NOT_COMPARED,))
    return CheckOutcome(evidence)


def _is_refused(results: list[CheckOutcome]) -> bool:
    return any(doubt.refuses for result in results for doubt in result.doubts)
