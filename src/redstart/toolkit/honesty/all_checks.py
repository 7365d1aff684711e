"""Run every check of a passing patch."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from typing import Any

from redstart.core.report import CheckEvidence
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.honesty.controls.negative_controls import examine_controls
from redstart.toolkit.honesty.controls.subjects import is_chosen
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch
from redstart.toolkit.honesty.expected_data import examine_data
from redstart.toolkit.honesty.neutral import examine_neutral
from redstart.toolkit.honesty.used_files import examine_files
from redstart.toolkit.honesty.verdict.levels import Measures
from redstart.toolkit.languages.registry import find_runner_language

NOT_COMPARED = "compared in Python only"
Check = Callable[[], Coroutine[Any, Any, CheckOutcome | None]]


async def examine(patch: GreenPatch, runs: CheckRuns, measures: Measures) -> list[CheckOutcome]:
    """Run the checks of the level: all at the same time if the runs allow that, else up to the first that refuses."""
    checks = list(_list_checks(patch, runs, measures))
    if runs.is_concurrent:
        return [outcome for outcome in await run_together(check() for check in checks) if outcome]
    results: list[CheckOutcome] = []
    for check in checks:
        if outcome := await check():
            results.append(outcome)
            if any(doubt.refuses for doubt in outcome.doubts):
                break
    return results


def _list_checks(patch: GreenPatch, runs: CheckRuns, measures: Measures) -> Iterator[Check]:
    language = find_runner_language(patch.suite.runner)
    own_checks = language.green_checks if language else None
    yield partial(examine_controls, patch, runs, rounds=measures.controls)
    yield partial(examine_neutral, patch, runs, far=measures.is_extended)
    yield partial(examine_files, patch, runs)
    if own_checks:
        yield partial(own_checks.examine_assertions, patch, runs)
    yield partial(examine_data, patch, runs)
    if measures.is_extended:
        yield partial(own_checks.examine_nearby, patch, runs) if own_checks else partial(_report_not_compared, patch)


async def _report_not_compared(patch: GreenPatch) -> CheckOutcome:
    cases = {case.id for case in patch.after or patch.before if is_chosen(case.id, patch.targets)}
    evidence = CheckEvidence(check="nearby", targets=len(cases or set(patch.targets)), covered=0, notes=(NOT_COMPARED,))
    return CheckOutcome(evidence)
