"""Format the findings of an audit as text for the terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.finding import Finding, FindingList, Risk
from redstart.core.frozen import format_count
from redstart.core.run import RunState
from redstart.core.safe_text import escape_line, to_one_line

GRAVEST_FIRST = tuple(reversed(Risk))


class ReportScreen(NamedTuple):
    """How to show a report."""

    width: int | None = None
    """Column to wrap lines at; None to keep each line whole, for programs."""
    min_risk: Risk = Risk.medium
    """Findings with a lower risk are counted and not listed."""
    baseline: Path | None = None
    """The file of accepted findings, if there is one."""


def report_lines(report: FindingList, state: RunState, screen: ReportScreen) -> list[str]:
    """Format the listed findings, the counts by risk, the warnings, and the cost of the run."""
    listed_findings = [finding for finding in report.findings if finding.risk.is_at_least(screen.min_risk)]
    lines = [line for finding in listed_findings for line in _wrap_text(format_finding(finding), screen, "    ")]
    lines += [""] if listed_findings else []
    lines += summary_lines(report.findings, screen.min_risk)
    lines += [line for text in report.warnings for line in _wrap_text(f"warning: {text}", screen, "  ")]
    for text in _list_remarks(report, state, screen):
        lines += _wrap_text(text, screen, "  ")
    return lines


def format_finding(finding: Finding) -> str:
    """Format a finding as one line, with every tool that reports it."""
    used = f" (used on line {finding.reaches})" if finding.reaches else ""
    other_tools = f", {', '.join(finding.also)}" if finding.also else ""
    text = f"{finding.message}{used} [{finding.tool} {finding.rule}{other_tools}]"
    return f"{escape_line(finding.path)}:{finding.line}  {finding.risk.value}  {to_one_line(text)}"


def summary_lines(findings: Sequence[Finding], min_risk: Risk) -> list[str]:
    """Format the number of findings, then a line for each risk, the highest first."""
    if not findings:
        return ["no findings"]
    counts = Counter(finding.risk for finding in findings)
    lines = [format_count(len(findings), "finding")]
    for risk in GRAVEST_FIRST:
        if counts[risk]:
            pronoun = "it" if counts[risk] == 1 else "them"
            hint = "" if risk.is_at_least(min_risk) else f": run with --show {risk.value} to list {pronoun}"
            lines.append(f"  {counts[risk]:,} {risk.value}{hint}")
    return lines


def _list_remarks(report: FindingList, state: RunState, screen: ReportScreen) -> list[str]:
    dropped_count = state.now.audit.dropped if state.now.audit else 0
    remarks: list[str] = []
    if screen.baseline is not None:
        remarks.append(_describe_accepted(report.accepted, escape_line(str(screen.baseline))))
    if dropped_count:
        verb = "does" if dropped_count == 1 else "do"
        remarks.append(
            f"{format_count(dropped_count, 'claim')} of the model {verb} not match the code and "
            f"{_choose_verb(dropped_count)} left out"
        )
    spend = state.spend
    cost = f"{format_count(spend.calls, 'model call')}, ${spend.usd:.3f} · " if spend.calls else ""
    return [*remarks, f"{cost}run {state.run_id}"]


def _describe_accepted(count: int, file: str) -> str:
    if not count:
        return f"no finding is accepted in {file}"
    pronoun = "it" if count == 1 else "them"
    return (
        f"{format_count(count, 'finding')} accepted in {file} {_choose_verb(count)} "
        f"left out (--no-baseline lists {pronoun})"
    )


def _choose_verb(count: int) -> str:
    return "is" if count == 1 else "are"


def _wrap_text(text: str, screen: ReportScreen, indent: str) -> list[str]:
    if screen.width is None:
        return [text]
    return textwrap.wrap(
        text,
        max(screen.width, 20),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
