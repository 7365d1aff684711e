"""The display of `redstart verify --history`: the report for the terminal, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from redstart.app.page import write_page
from redstart.app.settings import Settings
from redstart.app.verify.history.history import HistoryRequest, verify_history
from redstart.app.verify.history.page import name_group, render_history
from redstart.app.verify.history.summary import (
    COLUMNS,
    NoteworthyChange,
    NoteworthySection,
    list_counts,
    list_noteworthy,
    list_obstacles,
)
from redstart.app.verify.verify import STEP
from redstart.app.workspace import MayLend
from redstart.cli.output import echo, echo_json
from redstart.cli.progress_display import run_with_progress
from redstart.cli.verify_text import ReportLine, format_label, name_version, print_report, wrap_styled
from redstart.core.history import ChangeGroup, ChangeHistory
from redstart.core.safe_text import escape_line

MOST_GROUPS = 15
MOST_CHANGES = 5
"""Changes listed of each kind, unless the user wants all of them."""
MOST_DETAILS = 3
"""Tests or files listed of each change."""
WIDTH = 80
"""The width of the table if the output goes to a file."""
_NARROWEST = 8
_STYLES = {"Worse": "red", "Weakened": "yellow"}


def report_history(
    settings: Settings,
    path: Path,
    request: HistoryRequest,
    *,
    grouping: str,
    json: bool,
    html: Path | None,
    verbose: bool,
    may_lend: MayLend | None,
    unsafe: bool,
) -> int:
    """Verify the history and print the report. Return the exit code."""
    history = run_with_progress(
        settings,
        STEP,
        lambda app, report: verify_history(app, path, request, report=report, may_lend=may_lend),
        unsafe=unsafe,
    )
    if json:
        echo_json(history.model_dump_json(indent=2))
    else:
        print_report(partial(format_history, history, grouping=grouping, shows_all=verbose))
    if html is not None:
        size = write_page(html, render_history(history))
        echo(f"wrote {html} ({size / 1000:.0f} kB)", err=True)
    return history.exit_code


def format_history(
    history: ChangeHistory, width: int | None, *, grouping: str, shows_all: bool
) -> Iterator[ReportLine]:
    """Format the report, with a table by `author` or `agent`."""
    for number, sentence in enumerate(history.summary):
        yield from wrap_styled(sentence, width, "" if number else "bold", hang=0)
    if not history.changes:
        return
    yield ReportLine("")
    yield from format_label("branch", f"{name_version(history.head)}, since {history.since}", width)
    yield ReportLine("")
    groups = history.agents if grouping == "agent" else history.authors
    yield from _format_groups(groups, grouping, width or WIDTH, shows_all=shows_all)
    for section in list_noteworthy(history):
        yield from _format_section(section, width, shows_all=shows_all)
    if obstacles := list_obstacles(history):
        yield ReportLine("")
        yield ReportLine("Cannot run here: the tests need another environment")
        for text in obstacles if shows_all else obstacles[:MOST_CHANGES]:
            yield from wrap_styled(f"  {escape_line(text)}", width, "", hang=6)
        yield from _format_rest(len(obstacles), MOST_CHANGES, shows_all=shows_all)


def _format_groups(groups: Sequence[ChangeGroup], kind: str, width: int, *, shows_all: bool) -> Iterator[ReportLine]:
    titles = [title.rpartition(" ")[::2] for title in COLUMNS]
    widths = [max(map(len, lines)) + 2 for lines in titles]
    names = [escape_line(name_group(group, kind)) for group in groups]
    listed = len(groups) if shows_all else MOST_GROUPS
    longest = max((cell_len(name) for name in names[:listed]), default=0)
    name_width = max(_NARROWEST, min(longest, width - sum(widths)))
    for line, label in ((0, ""), (1, kind)):
        cells = (f"{title[line]:>{size}}" for title, size in zip(titles, widths, strict=True))
        yield ReportLine(f"{label:<{name_width}}{''.join(cells)}".rstrip(), "dim")
    for name, group in zip(names[:listed], groups, strict=False):
        cells = (f"{count or '-':>{size}}" for count, size in zip(list_counts(group.counts), widths, strict=True))
        yield ReportLine(f"{_shorten(name, name_width)}{''.join(cells)}")
    yield from _format_rest(len(groups), MOST_GROUPS, shows_all=shows_all)


def _shorten(name: str, width: int) -> str:
    """Return the name with exactly this width."""
    return set_cell_size(name, width) if cell_len(name) <= width else f"{set_cell_size(name, width - 1)}…"


def _format_section(section: NoteworthySection, width: int | None, *, shows_all: bool) -> Iterator[ReportLine]:
    yield ReportLine("")
    title = f"{section.title} ({len(section.changes):,}): {section.meaning}"
    yield from wrap_styled(title, width, _STYLES.get(section.title, ""), hang=2)
    for item in section.changes if shows_all else section.changes[:MOST_CHANGES]:
        yield from _format_change(item, width, shows_all=shows_all)
    yield from _format_rest(len(section.changes), MOST_CHANGES, shows_all=shows_all)


def _format_change(item: NoteworthyChange, width: int | None, *, shows_all: bool) -> Iterator[ReportLine]:
    change = item.change
    names = ", ".join((change.author, *change.agents))
    yield from wrap_styled(f"  {change.commit[:8]} {escape_line(f'{change.subject} ({names})')}", width, "", hang=11)
    listed = item.details if shows_all else item.details[:MOST_DETAILS]
    for detail in listed:
        yield from wrap_styled(f"           {escape_line(detail)}", width, "dim", hang=13)
    if len(listed) < len(item.details):
        yield ReportLine(f"           and {len(item.details) - len(listed):,} more", "dim")


def _format_rest(count: int, most: int, *, shows_all: bool) -> Iterator[ReportLine]:
    if count > most and not shows_all:
        yield ReportLine(f"  and {count - most:,} more: --verbose lists them", "dim")
