"""Format the findings of an audit as text for the terminal."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.finding import Finding, FindingList, Risk
from redstart.core.noun import many
from redstart.core.run import RunState
from redstart.core.visible import one_line, visible_line

GRAVEST_FIRST = tuple(reversed(Risk))


class ReportScreen(NamedTuple):
    """How to show a report."""

    width: int | None = None
    """Column to wrap lines at; None to keep each line whole, for programs."""
    least: Risk = Risk.medium
    """Findings with a lower risk are counted and not listed."""
    baseline: Path | None = None
    """The file of accepted findings, if there is one."""


def report_lines(report: FindingList, state: RunState, screen: ReportScreen) -> list[str]:
    """Format the listed findings, the counts by risk, the warnings, and the cost of the run."""
    listed = [finding for finding in report.findings if finding.risk.reaches(screen.least)]
    lines = [line for finding in listed for line in _wrapped(finding_text(finding), screen, "    ")]
    lines += [""] if listed else []
    lines += summary_lines(report.findings, screen.least)
    lines += [line for text in report.warnings for line in _wrapped(f"warning: {text}", screen, "  ")]
    for text in _remarks(report, state, screen):
        lines += _wrapped(text, screen, "  ")
    return lines


def finding_text(finding: Finding) -> str:
    """Format a finding as one line, with every tool that reports it."""
    used = f" (used on line {finding.reaches})" if finding.reaches else ""
    also = f", {', '.join(finding.also)}" if finding.also else ""
    text = f"{finding.message}{used} [{finding.tool} {finding.rule}{also}]"
    return f"{visible_line(finding.path)}:{finding.line}  {finding.risk.value}  {one_line(text)}"


def summary_lines(found: Sequence[Finding], least: Risk) -> list[str]:
    """Format the number of findings, then a line for each risk, the highest first."""
    if not found:
        return ["no findings"]
    counts = Counter(finding.risk for finding in found)
    lines = [many(len(found), "finding")]
    for risk in GRAVEST_FIRST:
        if counts[risk]:
            them = "it" if counts[risk] == 1 else "them"
            folded = "" if risk.reaches(least) else f": run with --show {risk.value} to list {them}"
            lines.append(f"  {counts[risk]:,} {risk.value}{folded}")
    return lines


def _remarks(report: FindingList, state: RunState, screen: ReportScreen) -> list[str]:
    dropped = state.now.audit.dropped if state.now.audit else 0
    remarks: list[str] = []
    if screen.baseline is not None:
        remarks.append(_accepted(report.accepted, visible_line(str(screen.baseline))))
    if dropped:
        does = "does" if dropped == 1 else "do"
        remarks.append(f"{many(dropped, 'claim')} of the model {does} not match the code and {_are(dropped)} left out")
    spend = state.spend
    cost = f"{many(spend.calls, 'model call')}, ${spend.usd:.3f} · " if spend.calls else ""
    return [*remarks, f"{cost}run {state.run_id}"]


def _accepted(count: int, file: str) -> str:
    if not count:
        return f"no finding is accepted in {file}"
    them = "it" if count == 1 else "them"
    return f"{many(count, 'finding')} accepted in {file} {_are(count)} left out (--no-baseline lists {them})"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _wrapped(text: str, screen: ReportScreen, indent: str) -> list[str]:
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
