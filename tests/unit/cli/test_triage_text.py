"""The report of a triage in a terminal of 80 columns and in a log, with names that try to leave their place."""

from __future__ import annotations

from rich.cells import cell_len

from redstart.cli.triage_text import CAUSES, END_STYLES, format_report
from redstart.core.report import OutcomeCounts
from redstart.core.triage import (
    BaseResult,
    Bisection,
    FailingTest,
    FailureOrigin,
    FirstBad,
    FlakeCause,
    SkippedCommit,
    Triage,
    TriageEnd,
)
from redstart.core.verification import CodeVersion

LONG = "assert 1 == 2 " * 20
COMMIT = "0123456789abcdef"
RESULT = Triage(
    redstart="0.1.0",
    repo="shop",
    end=TriageEnd.yours,
    exit_code=1,
    reason="2 of 25 failing tests are yours: 1 green on main, 1 new",
    base=CodeVersion(name="main", commit=COMMIT, tree="1"),
    head=CodeVersion(name="working tree", tree="2"),
    counts=OutcomeCounts(passed=1200, failed=25),
    tests=(
        FailingTest(
            test="tests/test_a.py::test[\x1b[2J\n]",
            origin=FailureOrigin.yours,
            failure=LONG,
            first_bad=FirstBad(commit=COMMIT, subject=LONG, author="Ann", date="2026-11-02", unknown=(COMMIT,) * 9),
        ),
        FailingTest(test="tests/test_a.py::test_new", origin=FailureOrigin.yours, base=BaseResult.absent),
        FailingTest(
            test="tests/test_a.py::test_flaky", origin=FailureOrigin.flaky, runs=9, failures=3, cause=FlakeCause.order
        ),
        *(
            FailingTest(test=f"tests/test_b.py::test_{number}", origin=FailureOrigin.already_red)
            for number in range(22)
        ),
    ),
    bisection=Bisection(
        commits=200, suite_runs=8, skipped=(SkippedCommit(commit=COMMIT, subject="Break it", reason=LONG),)
    ),
)


def test_text_fits_80_columns():
    lines = [line.text for line in format_report(RESULT, 80)]
    assert [line for line in lines if cell_len(line) > 80] == []
    assert "base     main (01234567)" in lines
    assert "tests    25 fail, 1,200 pass" in lines
    assert "               a new test" in lines
    assert "               fails in 3 of 9 runs: it depends on the tests that run before it" in lines
    assert "             and 2 more: --verbose lists them" in lines
    assert "searched 200 commits in 8 runs of the failing tests" in lines
    assert not any("\x1b" in line for line in lines)


def test_log_has_one_line_for_each_test_and_all_on_request():
    lines = [line.text for line in format_report(RESULT, None, shows_all=True)]
    assert sum("::test_" in line for line in lines) == 24
    (line,) = [line for line in lines if "or one of 9 commits before it that cannot run" in line]
    assert line.startswith("yours        tests/test_a.py::test[\\x1b[2J\\n]  assert 1 == 2")


def test_words_exist_for_every_cause_and_only_good_ends_are_green():
    assert set(CAUSES) == {*FlakeCause, None}
    assert set(END_STYLES) == {TriageEnd.green, TriageEnd.not_yours}
