"""Format the output of `redstart memory`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from shutil import get_terminal_size
from textwrap import shorten
from typing import TYPE_CHECKING

from redstart.core.noun import many
from redstart.core.visible import visible_line

if TYPE_CHECKING:
    from redstart.app.lessons import LessonStory
    from redstart.app.memory import CardStory, MemoryStats
    from redstart.core.graph import FailingFile, KnownFix, TypeInMonth

LEAST = 30
"""Minimum width of the last cell, however narrow the screen is."""


def card_lines(found: CardStory) -> Iterable[str]:
    card = found.card
    yield f"fix card {found.id}  {found.state.value}  {visible_line(found.repo)}  {when(found.created.timestamp())}"
    told = {
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
    told |= {f"step {number}": step for number, step in enumerate(card.debug_steps, 1)}
    told |= {name.replace("_", " "): said for name, said in card.provenance.items()}
    yield from (f"  {name:<12} {visible_line(said)}" for name, said in told.items() if said)
    yield f"  {'shown to':<12} {', '.join(found.recalled_by) or 'no run yet'}"


def lesson_lines(found: LessonStory) -> Iterable[str]:
    lesson, worth = found.lesson, found.worth
    yield f"lesson {lesson.id}  {lesson.status.value}  {visible_line(lesson.repo)}  {when(lesson.made_at)}"
    measured = f"{worth.estimate:+.0f} points of solve rate, between {worth.low:+.0f} and {worth.high:+.0f}"
    told = {
        "when": lesson.when,
        "advice": lesson.advice,
        "for": {"repo": "its repo", "tenant": "all of your repos", "global": "everyone"}[lesson.scope.value],
        "why": lesson.reason,
        "effect": f"{measured}, from {many(worth.runs, 'run')}" if worth.runs else "not measured yet",
        "chance": f"{worth.helps:.0%} that it helps, {worth.harms:.0%} that it harms, given lessons of its kind",
        "with it": f"{lesson.counts.green_when_shown} of {many(lesson.counts.shown, 'run')} solved",
        "without it": f"{lesson.counts.green_when_withheld} of {many(lesson.counts.withheld, 'run')} solved",
        "taught by": ", ".join((lesson.provenance.run, *lesson.sources)),
        "model": lesson.provenance.model,
        "approved by": lesson.approved_by,
    }
    yield from (f"  {name:<12} {visible_line(said)}" for name, said in told.items() if said)


def count_lines(found: MemoryStats) -> Iterable[str]:
    def counts(told: dict[str, int]) -> str:
        return ", ".join(f"{visible_line(name)} {count}" for name, count in told.items()) or "none"

    yield f"{'fix cards':<24} {found.cards}"
    yield f"{'  by state':<24} {counts(found.states)}"
    yield f"{'  by repo':<24} {counts(found.repos)}"
    yield f"{'lessons':<24} {counts(found.lessons)}"
    yield f"{'failed attempts':<24} {found.failures}"
    yield f"{'cards recalled':<24} {found.recalled}, by {many(found.recalling_runs, 'run')}"
    yield from (f"{f'  {visible_line(item.card)}':<24} {many(item.runs, 'run')}" for item in found.often)


def file_lines(found: Sequence[FailingFile]) -> Iterable[str]:
    rows = [(str(item.attempts), str(item.runs), visible_line(item.repo), visible_line(item.path)) for item in found]
    yield from table(("failed attempts", "runs", "repo", "file"), rows, "no failed attempts yet")


def fix_lines(found: Sequence[KnownFix], signature: str) -> Iterable[str]:
    rows = [
        (
            item.card,
            when(item.created),
            item.state,
            visible_line(item.repo),
            ", ".join(map(visible_line, item.files)),
            visible_line(item.summary),
        )
        for item in found
    ]
    head = ("fix card", "saved", "state", "repo", "files", "summary")
    yield from table(head, rows, f"no fix card for {visible_line(signature)}")


def type_lines(found: Sequence[TypeInMonth]) -> Iterable[str]:
    rows = [(item.month, str(item.runs), visible_line(item.repo), visible_line(item.type)) for item in found]
    yield from table(("month", "runs", "repo", "type"), rows, "no exceptions yet")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], nothing: str = "") -> Iterable[str]:
    """Align the columns to their contents and cut the last one to the screen. Return `nothing` if there are no rows."""
    if not rows:
        return [nothing]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    room = max(get_terminal_size().columns - sum(width + 2 for width in widths[:-1]), LEAST)
    lines: list[str] = []
    for row in (head, *rows):
        first = "".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths[:-1], strict=True))
        lines.append((first + shorten(row[-1], room, placeholder=" …")).rstrip())
    return lines


def when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
