"""An audit lists serious findings, counts the rest, and keeps every line within the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.cli.audit import RiskName
from redstart.cli.findings import ReportScreen, format_finding, report_lines
from redstart.core.finding import Finding, FindingList, Findings, ReviewSummary, Risk, Severity
from redstart.core.run import Attempt, Mode, Spend, Step
from redstart.testing.states import make_spec, make_state

LONG = "the value of this parameter reaches a query that is put together from strings; pass it as a parameter instead"


def make_finding(risk: Risk, line: int = 1, message: str = "message", path: str = "shop/find.py") -> Finding:
    return Finding(
        tool="rules",
        rule="sql",
        path=path,
        line=line,
        severity=Severity.error,
        message=message,
        fingerprint=f"{line}",
        risk=risk,
        also=("ruff S608",),
    )


def format_lines(
    report: FindingList,
    screen: ReportScreen = ReportScreen(),  # noqa: B008
    dropped: int = 0,
    calls: int = 0,
) -> list[str]:
    audit_findings = Findings(count=len(report.findings), dropped=dropped)
    run = make_state(
        spec=make_spec(mode=Mode.audit), now=Attempt(entry=Step.plan, audit=audit_findings), spend=Spend(calls=calls)
    )
    return report_lines(report, run, screen)


MIXED = FindingList(
    findings=(
        make_finding(Risk.high, 7),
        make_finding(Risk.medium, 8),
        *(make_finding(Risk.low, line) for line in range(171)),
    )
)


def test_low_findings_are_counted_but_not_listed():
    output_lines = format_lines(MIXED)
    assert output_lines[:7] == [
        "shop/find.py:7  high  message [rules sql, ruff S608]",
        "shop/find.py:8  medium  message [rules sql, ruff S608]",
        "",
        "173 findings",
        "  1 high",
        "  1 medium",
        "  171 low: run with --show low to list them",
    ]


def test_all_findings_are_listed_on_request():
    output_lines = format_lines(MIXED, ReportScreen(min_risk=Risk.low))
    assert sum(": message" in line or "  message [" in line for line in output_lines) == 173
    assert "  171 low" in output_lines


@pytest.mark.parametrize("width", [40, 80, 100, 140])
def test_lines_wrap_at_words_with_a_hanging_indent(width):
    report = FindingList(findings=(make_finding(Risk.high, message=LONG),), warnings=(f"warned that {LONG}",))
    wide_lines, narrow = (
        format_lines(report),
        format_lines(report, ReportScreen(width=width, baseline=Path("redstart-baseline.json"))),
    )
    assert max(len(line) for line in narrow) <= width
    assert " ".join(wide_lines[0].split()) == " ".join(" ".join(narrow[: narrow.index("")]).split())
    assert all(line.startswith("    ") for line in narrow[1 : narrow.index("")])


def test_incomplete_audit_gives_a_warning():
    review = ReviewSummary(answers=18, unreadable=12, reason="no JSON", unreviewed=4)
    report = FindingList(warnings=(review.warning,))
    assert format_lines(report, calls=18)[:2] == [
        "no findings",
        "warning: 12 of 18 model answers could not be read (no JSON); 4 files were checked by tools only",
    ]
    assert ReviewSummary(answers=7, unreadable=1).warning == ""


@pytest.mark.parametrize(("count", "said"), [(1, "1 claim of the model does not"), (2, "2 claims of the model do not")])
def test_dropped_claims_are_counted(count, said):
    (line,) = [line for line in format_lines(FindingList(), dropped=count) if "claim" in line]
    assert line.startswith(said)


def test_single_call_is_printed_in_the_singular():
    assert format_lines(FindingList(), calls=1)[-1].startswith("1 model call, $0.000 · run ")


def test_path_cannot_inject_terminal_sequences():
    text = format_finding(make_finding(Risk.high, path="a\x1b[2J\n\udcff.py", message="one\n\x1b[31mtwo"))
    assert text.isprintable()


def test_command_risks_match_the_code():
    assert [risk.value for risk in RiskName] == [risk.value for risk in Risk]
