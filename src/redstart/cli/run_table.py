"""Format runs as a table that fits the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from redstart.app.run_status import RunView
from redstart.core.safe_text import escape_line

HEAD = ("ID", "AGE", "MODE", "STATE", "RESULT", "MODEL", "COST", "GOAL")
COLUMN_GAP = "  "
RESULTS = {
    "verified": "verified",
    "unproven": "unproven",
    "partial": "partial",
    "already_green": "already green",
    "unsolved": "not solved",
    "stuck": "stuck",
    "capped": "limit",
    "no_tests": "no tests",
    "environment": "environment",
    "refused": "refused",
    "needs_human": "needs input",
    "reported": "reported",
    "found": "findings",
}
"""The text on the screen for every result."""
_STEPS = ((60.0, 1.0, "s"), (3600.0, 60.0, "min"), (86_400.0, 3600.0, "h"), (30 * 86_400.0, 86_400.0, "d"))


def format_run_table(views: Sequence[RunView], now: datetime, width: int) -> list[str]:
    """Format a header and one line per run. If the terminal is narrow, cut the goal and the model name in turns."""
    rows = [HEAD, *(_format_cells(view, now) for view in views)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    model, goal = HEAD.index("MODEL"), len(HEAD) - 1
    spare = width - sum(widths) - len(COLUMN_GAP) * goal
    for column, min_width in ((goal, 30), (model, 12), (goal, 12), (model, 6), (goal, 7)):
        reduction = min(max(-spare, 0), max(widths[column] - min_width, 0))
        widths[column] -= reduction
        spare += reduction
    gap = COLUMN_GAP if spare >= 0 else " "
    return [
        gap.join(_cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def format_age(elapsed: timedelta) -> str:
    """Format an age in the largest unit that fits: `3 min`."""
    seconds = max(elapsed.total_seconds(), 0.0)
    for end, unit, name in _STEPS:
        if seconds < end:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / (30 * 86_400.0):.0f} mo"


def _format_cells(view: RunView, now: datetime) -> tuple[str, ...]:
    cost = f"${view.usd:.2f}" + ("+?" if view.unpriced else "")
    description = " ".join(f"{view.repo}: {view.goal}".split()) if view.goal else view.repo
    return (
        view.run_id,
        format_age(now - view.created),
        view.mode,
        view.status.value,
        RESULTS.get(view.result, view.result) or "-",
        escape_line(view.model) or "-",
        cost,
        escape_line(description),
    )


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: max(size - 1, 0)] + "…"
