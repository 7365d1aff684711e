"""Run every check of a passing patch, one after the other."""

from __future__ import annotations

from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.controls.negative_controls import examine_controls
from redstart.toolkit.honesty.controls.subjects import is_chosen
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch
from redstart.toolkit.honesty.expected_data import examine_data
from redstart.toolkit.honesty.neutral import examine_neutral
from redstart.toolkit.honesty.used_files import examine_files
from redstart.toolkit.honesty.verdict.levels import Measures
from redstart.toolkit.languages.registry import find_runner_language

NOT_COMPARED = "compared in Python only"


async def examine(patch: GreenPatch, runs: CheckRuns, measures: Measures) -> list[CheckOutcome]:
    """Run the checks of the level, up to the first that refuses the patch."""
    results: list[CheckOutcome] = []
    results.append(await examine_controls(patch, runs, rounds=measures.controls))
    if not _is_refused(results):
        results.append(await examine_neutral(patch, runs, far=measures.is_extended))
    if not _is_refused(results) and (used := await examine_files(patch, runs)):
        results.append(used)
    language = find_runner_language(patch.suite.runner)
    checks = language.green_checks if language else None
    if checks and not _is_refused(results) and (outcome := await checks.examine_assertions(patch, runs)):
        results.append(outcome)
    if not _is_refused(results) and (data := await examine_data(patch, runs)):
        results.append(data)
    if measures.is_extended and not _is_refused(results):
        results.append(await checks.examine_nearby(patch, runs) if checks else _report_not_compared(patch))
    return results


def _report_not_compared(patch: GreenPatch) -> CheckOutcome:
    cases = {case.id for case in patch.after or patch.before if is_chosen(case.id, patch.targets)}
    evidence = CheckEvidence(check="nearby", targets=len(cases or set(patch.targets)), covered=0, notes=(NOT_COMPARED,))
    return CheckOutcome(evidence)


def _is_refused(results: list[CheckOutcome]) -> bool:
    return any(doubt.refuses for result in results for doubt in result.doubts)
