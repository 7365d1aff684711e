"""Format the output of `redstart memory`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from shutil import get_terminal_size
from textwrap import shorten
from typing import TYPE_CHECKING

from redstart.core.frozen import format_count
from redstart.core.safe_text import escape_line

if TYPE_CHECKING:
    from redstart.app.lessons import LessonStory
    from redstart.app.memory import CardStory, MemoryStats
    from redstart.core.graph import FailingFile, KnownFix, TypeInMonth

MIN_CELL_WIDTH = 30
"""Minimum width of the last cell, however narrow the screen is."""


def card_lines(story: CardStory) -> Iterable[str]:
    card = story.card
    yield (
        f"fix card {story.id}  {story.state.value}  {escape_line(story.repo)}  {format_time(story.created.timestamp())}"
    )
    fields = {
        "what": card.summary,
        "cause": card.root_cause,
        "fix": card.fix,
        "proof": card.verification,
        "outcome": card.outcome,
        "asked": "the run asked a person before its tests passed" if card.asked else "",
        "files": ", ".join(card.files_changed),
        "test": card.test_id,
        "failure": card.error_signature,
        "kind": card.family,
    }
    fields |= {f"step {number}": step for number, step in enumerate(card.debug_steps, 1)}
    fields |= {name.replace("_", " "): value for name, value in card.provenance.items()}
    yield from (f"  {name:<12} {escape_line(value)}" for name, value in fields.items() if value)
    yield f"  {'shown to':<12} {', '.join(story.recalled_by) or 'no run yet'}"


def lesson_lines(story: LessonStory) -> Iterable[str]:
    lesson, effect = story.lesson, story.worth
    yield f"lesson {lesson.id}  {lesson.status.value}  {escape_line(lesson.repo)}  {format_time(lesson.made_at)}"
    effect_text = f"{effect.estimate:+.0f} points of solve rate, between {effect.low:+.0f} and {effect.high:+.0f}"
    fields = {
        "when": lesson.when,
        "advice": lesson.advice,
        "for": {"repo": "its repo", "tenant": "all of your repos", "global": "everyone"}[lesson.scope.value],
        "why": lesson.reason,
        "effect": f"{effect_text}, from {format_count(effect.runs, 'run')}" if effect.runs else "not measured yet",
        "chance": f"{effect.helps:.0%} that it helps, {effect.harms:.0%} that it harms, estimated with similar lessons",
        "with it": f"{lesson.counts.green_when_shown} of {format_count(lesson.counts.shown, 'run')} solved",
        "without it": f"{lesson.counts.green_when_withheld} of {format_count(lesson.counts.withheld, 'run')} solved",
        "taught by": ", ".join((lesson.provenance.run, *lesson.sources)),
        "model": lesson.provenance.model,
        "approved by": lesson.approved_by,
    }
    yield from (f"  {name:<12} {escape_line(value)}" for name, value in fields.items() if value)


def count_lines(summary: MemoryStats) -> Iterable[str]:
    def format_counts(told: dict[str, int]) -> str:
        return ", ".join(f"{escape_line(name)} {count}" for name, count in told.items()) or "none"

    yield f"{'fix cards':<24} {summary.cards}"
    yield f"{'  by state':<24} {format_counts(summary.states)}"
    yield f"{'  by repo':<24} {format_counts(summary.repos)}"
    yield f"{'lessons':<24} {format_counts(summary.lessons)}"
    yield f"{'failed attempts':<24} {summary.failures}"
    yield f"{'cards recalled':<24} {summary.recalled}, by {format_count(summary.recalling_runs, 'run')}"
    yield from (f"{f'  {escape_line(item.card)}':<24} {format_count(item.runs, 'run')}" for item in summary.often)


def file_lines(files: Sequence[FailingFile]) -> Iterable[str]:
    rows = [(str(item.attempts), str(item.runs), escape_line(item.repo), escape_line(item.path)) for item in files]
    yield from format_table(("failed attempts", "runs", "repo", "file"), rows, "no failed attempts yet")


def fix_lines(fixes: Sequence[KnownFix], signature: str) -> Iterable[str]:
    rows = [
        (
            item.card,
            format_time(item.created),
            item.state,
            escape_line(item.repo),
            ", ".join(map(escape_line, item.files)),
            escape_line(item.summary),
        )
        for item in fixes
    ]
    head = ("fix card", "saved", "state", "repo", "files", "summary")
    yield from format_table(head, rows, f"no fix card for {escape_line(signature)}")


def type_lines(types: Sequence[TypeInMonth]) -> Iterable[str]:
    rows = [(item.month, str(item.runs), escape_line(item.repo), escape_line(item.type)) for item in types]
    yield from format_table(("month", "runs", "repo", "type"), rows, "no exceptions yet")


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], empty_text: str = "") -> Iterable[str]:
    """Align the columns to their contents and cut the last one to the screen. Return `empty_text` if there are no
    rows."""
    if not rows:
        return [empty_text]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    available_width = max(get_terminal_size().columns - sum(width + 2 for width in widths[:-1]), MIN_CELL_WIDTH)
    lines: list[str] = []
    for row in (head, *rows):
        leading_cells = "".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths[:-1], strict=True))
        lines.append((leading_cells + shorten(row[-1], available_width, placeholder=" …")).rstrip())
    return lines


def format_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
