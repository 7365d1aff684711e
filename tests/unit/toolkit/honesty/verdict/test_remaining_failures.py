"""How far a run is from its goal, in the words that the user reads."""

from __future__ import annotations

from typing import Any

import pytest

from redstart.core.progress import AttemptOutcome
from redstart.core.report import Ids, OutcomeCounts, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import Attempt, AttemptSummary, Mode, RunState, Step
from redstart.testing.states import make_spec, make_state, report
from redstart.toolkit.honesty.verdict.remaining_failures import (
    describe_failing_before,
    describe_failing_tests,
    describe_fix,
    explain_unproven,
)


def create_ids(count: int) -> Ids:
    return Ids.from_ids(f"tests/test_a.py::test_{number}" for number in range(count))


def create_run(
    verdict: Verdict | None, *, targets: int | None = 3, mode: Mode = Mode.fix, earlier: tuple[int | None, ...] = ()
) -> RunState:
    attempt = Attempt(
        entry=Step.reproduce,
        reproduce=None if targets is None else ReproductionResult(report=report(), targets=create_ids(targets)),
        test=None if verdict is None else PatchTestResult(report=report(), verdict=verdict),
    )
    history = tuple(
        AttemptSummary(number=number, seen=AttemptOutcome(wrong=wrong)) for number, wrong in enumerate(earlier, 1)
    )
    return make_state(spec=make_spec(mode=mode), now=attempt, history=history)


def create_program_run(written: int, counts: OutcomeCounts | None) -> RunState:
    """The run of a program whose tests, `written` of them, had these results."""
    attempt = Attempt(
        entry=Step.reproduce,
        reproduce=ReproductionResult(report=report(), targets=create_ids(1), written=written),
        test=None if counts is None else PatchTestResult(report=report(counts=counts)),
    )
    return make_state(spec=make_spec(mode=Mode.create), now=attempt)


@pytest.mark.parametrize(
    ("fixed", "text"), [(1, "1 failing test now passes, and"), (2, "2 failing tests now pass, and")]
)
def test_fix_is_described_by_the_number_of_fixed_tests(fixed: int, text: str) -> None:
    assert describe_fix(fixed).startswith(text)


def test_unproven_fix_names_the_language() -> None:
    assert "tests written in Go" in explain_unproven("Go")


@pytest.mark.parametrize(
    ("verdict", "targets", "text"),
    [
        (None, 3, "3 of 3 target tests still fail"),
        (None, None, "0 of 0 target tests still fail"),
        (Verdict(still_red=create_ids(2), fixed=create_ids(1)), 3, "2 of 3 target tests still fail"),
        (Verdict(still_red=create_ids(1), fixed=create_ids(2)), 3, "1 of 3 target tests still fails"),
        (Verdict(still_red=create_ids(1)), 1, "the target test still fails"),
        (Verdict(still_red=create_ids(3), fixed=create_ids(2)), 1, "3 of 5 target tests still fail"),
        (Verdict(fixed=create_ids(3), newly_red=create_ids(1)), 3, "1 newly failing test"),
        (
            Verdict(still_red=create_ids(1), missing=create_ids(1), newly_skipped=create_ids(2), flaky=create_ids(3)),
            4,
            "1 of 4 target tests still fails, 1 missing test, 2 newly skipped tests, 3 flaky tests",
        ),
        (Verdict(fixed=create_ids(3)), 3, "the tests do not pass"),
    ],
)
def test_failing_tests_of_a_fix_are_counted(verdict: Verdict | None, targets: int | None, text: str) -> None:
    assert describe_failing_tests(create_run(verdict, targets=targets)) == text


@pytest.mark.parametrize(
    ("written", "counts", "text"),
    [
        (5, None, "5 of 5 tests still fail"),
        (5, OutcomeCounts(passed=4), "5 of 5 tests still fail"),
        (5, OutcomeCounts(passed=4, failed=2, errors=1), "3 of 7 tests still fail"),
        (1, None, "the test still fails"),
    ],
)
def test_failing_tests_of_a_program_are_counted_by_its_report(
    written: int, counts: OutcomeCounts | None, text: str
) -> None:
    assert describe_failing_tests(create_program_run(written, counts)) == text


def test_program_without_tests_has_none_that_fail() -> None:
    state = make_state(spec=make_spec(mode=Mode.create), now=Attempt(entry=Step.plan))
    assert describe_failing_tests(state) == "0 of 0 tests still fail"


RED = Verdict(still_red=create_ids(2))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, " (was 3)"),
        ({"targets": 2}, ""),
        ({"targets": None}, ""),
        ({"earlier": (5, 4)}, " (was 4)"),
        ({"earlier": (5, None)}, " (was 5)"),
        ({"earlier": (3, 2)}, ""),
        ({"verdict": None}, ""),
        ({"verdict": Verdict(still_red=create_ids(2), newly_red=create_ids(1))}, ""),
        ({"verdict": Verdict(still_red=create_ids(2), missing=create_ids(1))}, ""),
        ({"mode": Mode.create}, ""),
    ],
)
def test_earlier_number_is_stated_if_it_changed_and_the_counts_compare(changes: dict[str, Any], text: str) -> None:
    assert describe_failing_before(create_run(**{"verdict": RED, **changes})) == text
