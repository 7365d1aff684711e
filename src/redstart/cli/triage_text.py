"""Format the result of a triage for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from redstart.cli.verify_text import ReportLine, format_label, name_version, wrap_styled
from redstart.core.safe_text import escape_line
from redstart.core.triage import BaseResult, FailingTest, FailureOrigin, Triage, TriageEnd

MOST_LISTED = 20
"""Tests listed of each origin, unless the user wants all of them."""
ORIGIN_NAMES = {origin: origin.value.replace("_", " ") for origin in FailureOrigin}
ORIGIN_STYLES = {FailureOrigin.yours: "red", FailureOrigin.flaky: "yellow", FailureOrigin.environment: "yellow"}
END_STYLES = {TriageEnd.green: "green", TriageEnd.not_yours: "green"}
COLUMN = max(map(len, ORIGIN_NAMES.values())) + 2
"""Width of the column that names the origin."""


def format_report(result: Triage, width: int | None, *, shows_all: bool = False) -> Iterator[ReportLine]:
    """Format the report. Without a width, each test is one line, so that it can be searched."""
    yield from format_label("head", name_version(result.head), width)
    yield from format_label("base", name_version(result.base), width)
    if result.counts.total:
        passed = f"{result.counts.passed:,} pass"
        yield from format_label("tests", f"{result.counts.red:,} fail, {passed}", width)
    if result.tests:
        yield ReportLine("")
        yield ReportLine(f"{'whose':<{COLUMN}}failing test", "dim")
    for origin in FailureOrigin:
        tests = result.list_tests(origin)
        for test in tests if shows_all else tests[:MOST_LISTED]:
            yield from _format_test(test, width)
        if not shows_all and len(tests) > MOST_LISTED:
            yield ReportLine(f"{'':<{COLUMN}}and {len(tests) - MOST_LISTED:,} more: --verbose lists them", "dim")
    for note in result.notes:
        yield from wrap_styled(f"note: {note}", width, "", hang=6)
    yield ReportLine("")
    end = result.end.value.replace("_", " ").upper()
    yield from wrap_styled(f"{end}: {result.reason}", width, END_STYLES.get(result.end, "bold red"), hang=2)
    for line in result.remedy.splitlines():
        yield from wrap_styled(f"hint: {line}", width, "", hang=6)


def _format_test(test: FailingTest, width: int | None) -> Iterator[ReportLine]:
    origin, name = ORIGIN_NAMES[test.origin], escape_line(test.test)
    details = [escape_line(detail) for detail in _list_details(test)]
    if width is None:
        yield ReportLine(f"{origin:<{COLUMN}}{name}  {'; '.join(details)}".rstrip(), ORIGIN_STYLES.get(test.origin, ""))
        return
    yield ReportLine(f"{origin:<{COLUMN}}{name}", ORIGIN_STYLES.get(test.origin, ""))
    for detail in details:
        yield from wrap_styled(f"{'':<{COLUMN + 2}}{detail}", width, "dim", hang=COLUMN + 4)


def _list_details(test: FailingTest) -> list[str]:
    """List what is known of the failing test, one line each."""
    is_new = test.origin is FailureOrigin.yours and test.base is BaseResult.absent
    details = [test.note or test.failure, "a new test" if is_new else ""]
    return [detail for detail in details if detail]
