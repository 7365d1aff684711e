"""The display of `redstart models compare`: what it costs at most, the progress, and the result."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

from redstart.app.page import write_page
from redstart.cli.output import confirm, echo, echo_json
from redstart.cli.text_wrap import wrap
from redstart.core.errors import ConfigError
from redstart.core.frozen import format_count
from redstart.evals.comparison_run import (
    CollectedBugs,
    ComparisonRequest,
    open_comparison,
    read_bugs,
    refuse_unusable_models,
    search_bugs,
)
from redstart.evals.comparison_text import format_model_comparison, format_offer
from redstart.evals.model_comparison import ModelComparison
from redstart.evals.outcome import RunOutcome
from redstart.evals.page.comparison import render_comparison
from redstart.evals.report import format_row
from redstart.evals.verify import TaskCheck


def compare_models(
    request: ComparisonRequest, *, can_ask: bool, may_start: bool, json: bool, html: Path | None
) -> None:
    """Search the bugs, say what playing them costs at most, and play them if the user agrees.

    Everything but the result goes to standard error.
    """
    refuse_unusable_models(request)
    bugs = read_bugs(request) or _search_bugs(request)
    played = 0

    def show_outcome(model: str, row: RunOutcome) -> None:
        nonlocal played
        played += 1
        _tell(f"{format_row(row, played, remaining)}, {model}")

    with open_comparison(request, bugs, show_outcome) as comparison:
        remaining = comparison.remaining
        if remaining:
            for line in format_offer(comparison.frame, len(bugs.tasks), remaining, comparison.measure_spent()):
                _tell(line)
            # The question would be part of a result that goes to a file.
            if not may_start and not (can_ask and sys.stdout.isatty()):
                raise ConfigError("nobody can be asked whether to start", remedy="add --no-input to start at once")
            if not may_start and not confirm("Start?", default=True):
                _tell("nothing was played")
                return
        result = comparison.play()
    _print_result(result, json=json, html=html)


def _search_bugs(request: ComparisonRequest) -> CollectedBugs:
    checked: Counter[bool] = Counter()

    def show_check(check: TaskCheck) -> None:
        checked[check.ok] += 1
        _tell(f"{check.task}: {'usable' if check.ok else check.why}")

    _tell("searching the git history for past bugs; no model is asked")
    bugs = search_bugs(request, show_check)
    _tell(f"{checked[True]} of {format_count(checked.total(), 'commit')} usable")
    if bugs.seconds >= request.search_seconds:
        _tell("note: the search stopped after half of --max-minutes; with another --name, it continues")
    return bugs


def _print_result(result: ModelComparison, *, json: bool, html: Path | None) -> None:
    if json:
        echo_json(result.model_dump_json())
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in format_model_comparison(result):
            for part in wrap(line, width, hang=2):
                echo(part)
    if html is not None:
        size = write_page(html, render_comparison(result))
        _tell(f"wrote {html} ({size / 1000:.0f} kB)")


def _tell(text: str) -> None:
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    for line in wrap(text, width, hang=2):
        echo(line, err=True)
