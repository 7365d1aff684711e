"""An audit lists serious findings, counts the rest, and keeps every line within the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.cli.audit import RiskName
from redstart.cli.findings import ReportScreen, finding_text, report_lines
from redstart.core.finding import Finding, FindingList, Findings, ReviewSummary, Risk, Severity
from redstart.core.run import Attempt, Mode, Spend, Step
from redstart.testing.states import spec, state

LONG = "the value of this parameter reaches a query that is put together from strings; pass it as a parameter instead"


def finding(risk: Risk, line: int = 1, message: str = "message", path: str = "shop/find.py") -> Finding:
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


def lines(report: FindingList, screen: ReportScreen = ReportScreen(), dropped: int = 0, calls: int = 0) -> list[str]:  # noqa: B008
    audited = Findings(count=len(report.findings), dropped=dropped)
    run = state(spec=spec(mode=Mode.audit), now=Attempt(entry=Step.plan, audit=audited), spend=Spend(calls=calls))
    return report_lines(report, run, screen)


MIXED = FindingList(
    findings=(finding(Risk.high, 7), finding(Risk.medium, 8), *(finding(Risk.low, line) for line in range(171)))
)


def test_low_findings_are_counted_and_not_listed():
    shown = lines(MIXED)
    assert shown[:7] == [
        "shop/find.py:7  high  message [rules sql, ruff S608]",
        "shop/find.py:8  medium  message [rules sql, ruff S608]",
        "",
        "173 findings",
        "  1 high",
        "  1 medium",
        "  171 low: run with --show low to list them",
    ]


def test_all_are_listed_where_that_is_asked_for():
    shown = lines(MIXED, ReportScreen(least=Risk.low))
    assert sum(": message" in line or "  message [" in line for line in shown) == 173
    assert "  171 low" in shown


@pytest.mark.parametrize("width", [40, 80, 100, 140])
def test_lines_are_wrapped_at_words_with_a_hanging_indent(width):
    report = FindingList(findings=(finding(Risk.high, message=LONG),), warnings=(f"warned that {LONG}",))
    whole, narrow = lines(report), lines(report, ReportScreen(width=width, baseline=Path("redstart-baseline.json")))
    assert max(len(line) for line in narrow) <= width
    assert " ".join(whole[0].split()) == " ".join(" ".join(narrow[: narrow.index("")]).split())
    assert all(line.startswith("    ") for line in narrow[1 : narrow.index("")])


def test_what_the_audit_could_not_do_is_a_warning():
    review = ReviewSummary(answers=18, unreadable=12, reason="no JSON", unreviewed=4)
    report = FindingList(warnings=(review.warning,))
    assert lines(report, calls=18)[:2] == [
        "no findings",
        "warning: 12 of 18 model answers could not be read (no JSON); 4 files were checked by tools only",
    ]
    assert ReviewSummary(answers=7, unreadable=1).warning == ""


@pytest.mark.parametrize(("count", "said"), [(1, "1 claim of the model does not"), (2, "2 claims of the model do not")])
def test_claims_that_do_not_hold_are_counted(count, said):
    (line,) = [line for line in lines(FindingList(), dropped=count) if "claim" in line]
    assert line.startswith(said)


def test_one_call_is_one_call():
    assert lines(FindingList(), calls=1)[-1].startswith("1 model call, $0.000 · run ")


def test_a_path_cannot_write_on_the_terminal():
    text = finding_text(finding(Risk.high, path="a\x1b[2J\n\udcff.py", message="one\n\x1b[31mtwo"))
    assert text.isprintable()


def test_the_command_has_the_risks_of_the_code():
    assert [risk.value for risk in RiskName] == [risk.value for risk in Risk]
