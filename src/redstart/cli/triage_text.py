"""Format the result of a triage for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from redstart.cli.verify_text import ReportLine, format_label, name_version, wrap_styled
from redstart.core.frozen import clip, format_count
from redstart.core.safe_text import escape_line
from redstart.core.triage import (
    BaseResult,
    Bisection,
    FailingTest,
    FailureOrigin,
    FirstBad,
    FlakeCause,
    Triage,
    TriageEnd,
)

MOST_LISTED = 20
"""Tests listed of each origin, unless the user wants all of them."""
LONGEST_SUBJECT = 100
MOST_NAMED = 4
"""Commits named that may be the first bad one."""
ORIGIN_NAMES = {origin: origin.value.replace("_", " ") for origin in FailureOrigin}
ORIGIN_STYLES = {FailureOrigin.yours: "red", FailureOrigin.flaky: "yellow", FailureOrigin.environment: "yellow"}
END_STYLES = {TriageEnd.green: "green", TriageEnd.not_yours: "green"}
CAUSES = {
    None: "the cause is unknown",
    FlakeCause.order: "it depends on the tests that run before it",
    FlakeCause.time: "it depends on the time zone or the date",
    FlakeCause.seed: "it depends on the random seed",
    FlakeCause.hash_seed: "it depends on the hash seed, which orders sets",
    FlakeCause.leftover_file: "it depends on a file that was left behind",
    FlakeCause.network: "it depends on a connection",
    FlakeCause.chance: "nothing else differs, so it is chance",
}


def format_report(result: Triage, width: int | None, *, shows_all: bool = False) -> Iterator[ReportLine]:
    """Format the report. Without a width, each test is one line, so that it can be searched."""
    yield from format_label("head", name_version(result.head), width)
    yield from format_label("base", name_version(result.base), width)
    if result.counts.total:
        passed = f"{result.counts.passed:,} pass"
        yield from format_label("tests", f"{result.counts.red:,} fail, {passed}", width)
    column = max((len(ORIGIN_NAMES[test.origin]) for test in result.tests), default=0) + 2
    if result.tests:
        yield ReportLine("")
        yield ReportLine(f"{'whose':<{column}}failing test", "dim")
    for origin in FailureOrigin:
        tests = result.list_tests(origin)
        for test in tests if shows_all else tests[:MOST_LISTED]:
            yield from _format_test(test, width, column)
        if not shows_all and len(tests) > MOST_LISTED:
            yield ReportLine(f"{'':<{column}}and {len(tests) - MOST_LISTED:,} more: --verbose lists them", "dim")
    if result.bisection:
        yield ReportLine("")
        yield from _format_bisection(result.bisection, width)
    for note in result.notes:
        yield from wrap_styled(f"note: {note}", width, "", hang=6)
    yield ReportLine("")
    end = result.end.value.replace("_", " ").upper()
    yield from wrap_styled(f"{end}: {result.reason}", width, END_STYLES.get(result.end, "bold red"), hang=2)
    hints = "" if any(result.remedy == test.remedy for test in result.tests) else result.remedy
    for line in hints.splitlines():
        yield from wrap_styled(f"hint: {line}", width, "", hang=6)


def _format_test(test: FailingTest, width: int | None, column: int) -> Iterator[ReportLine]:
    origin, name = ORIGIN_NAMES[test.origin], escape_line(test.test)
    details = [escape_line(detail) for detail in _list_details(test)]
    if width is None:
        yield ReportLine(f"{origin:<{column}}{name}  {'; '.join(details)}".rstrip(), ORIGIN_STYLES.get(test.origin, ""))
        return
    yield ReportLine(f"{origin:<{column}}{name}", ORIGIN_STYLES.get(test.origin, ""))
    for detail in details:
        yield from wrap_styled(f"{'':<{column + 2}}{detail}", width, "dim", hang=column + 4)


def _list_details(test: FailingTest) -> list[str]:
    """List what is known of the failing test, one line each."""
    is_new = test.origin is FailureOrigin.yours and test.base is BaseResult.absent
    rate = ""
    if test.origin is FailureOrigin.not_reproduced:
        rate = f"passes in {test.runs} of {test.runs} runs here"
    elif test.origin is FailureOrigin.flaky:
        rate = f"fails in {test.failures} of {test.runs} runs: {CAUSES[test.cause]}"
    details = [rate, test.note or test.failure, "a new test" if is_new else ""]
    details += [f"hint: {line}" for line in test.remedy.splitlines()]
    details += [_describe_first_bad(test.first_bad)] if test.first_bad else []
    return [detail for detail in details if detail]


def _describe_first_bad(found: FirstBad) -> str:
    subject = clip(found.subject, LONGEST_SUBJECT)
    name = f"{found.commit[:8]} {found.date} {found.author}: {subject}" if found.commit else subject
    first = f"{'fails since it was added in' if found.added else 'first bad'} {name}"
    if not found.unknown:
        return first
    count = len(found.unknown)
    newest = ", ".join(commit[:8] for commit in found.unknown[-MOST_NAMED:])
    return f"{first}; or one of {format_count(count, 'commit')} before it that cannot run: {newest}"


def _format_bisection(bisection: Bisection, width: int | None) -> Iterator[ReportLine]:
    commits, runs = format_count(bisection.commits, "commit"), format_count(bisection.suite_runs, "run")
    yield from wrap_styled(f"searched {commits} in {runs} of the failing tests", width, "dim", hang=2)
    for skipped in bisection.skipped:
        text = escape_line(f"skipped {skipped.commit[:8]} {skipped.subject}: {skipped.reason}")
        yield from wrap_styled(text, width, "dim", hang=2)
