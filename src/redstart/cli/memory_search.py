"""`redstart memory search`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli.output import echo, echo_json

if TYPE_CHECKING:
    from redstart.app.memory_search import FailureMatch, FixMatch, LessonMatch, MemoryAnswer

WIDTH = 80


def search(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help="An error message or a pasted traceback; - or nothing reads standard input."
        ),
    ] = None,
    repo: Annotated[str | None, typer.Option("--repo", metavar="NAME", help="Search only this repo.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many of each kind.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Search memory for an error: earlier fixes, failed attempts and lessons. No model is asked.

    Example: redstart memory search "KeyError: 'price'"
    """
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.memory import open_memory
    from redstart.app.memory_search import search_memory

    words = " ".join(text or ())
    given = sys.stdin.read() if words in ("", "-") else words
    with open_memory(configuration.load()) as shelf:
        found = asyncio.run(search_memory(shelf, given, root=Path.cwd(), repo=repo, limit=limit))
    if json:
        echo_json(found.model_dump_json(indent=2))
        return
    for line in answer_lines(found):
        echo(line)


def answer_lines(found: MemoryAnswer) -> Iterator[str]:
    """What was found, wrapped at words."""
    from redstart.core.noun import many
    from redstart.core.visible import visible_line

    error = visible_line(found.error)
    if not (found.fixes or found.failures or found.lessons):
        yield from _wrapped(f"nothing known about: {error}", "")
        yield from _wrapped("hint: each run saves what it fixed and what failed; list it: redstart memory list", "")
        return
    fixes = "1 fix" if len(found.fixes) == 1 else f"{len(found.fixes)} fixes"
    counts = (fixes, many(len(found.failures), "failed attempt"), many(len(found.lessons), "lesson"))
    yield from _wrapped(f"{counts[0]}, {counts[1]} and {counts[2]} for: {error}", "")
    for fix in found.fixes:
        yield from _fix(fix)
    for failure in found.failures:
        yield from _failure(failure)
    for lesson in found.lessons:
        yield from _lesson(lesson)


def _fix(found: FixMatch) -> Iterator[str]:
    card = found.card
    yield from _head(f"fix {card.id}", found.match, found.repo, f"{found.created.astimezone():%Y-%m-%d}")
    yield from _parts({"what": card.summary, "cause": card.root_cause, "fix": card.fix})


def _failure(found: FailureMatch) -> Iterator[str]:
    record = found.failure
    yield from _head(f"failed attempt {record.id}", found.match, found.repo, f"{found.created.astimezone():%Y-%m-%d}")
    tried = record.tried or ", ".join(record.files)
    yield from _parts(
        {"tried": tried, "failed": record.what_failed, "cause": record.root_cause, "try next": record.try_next}
    )


def _lesson(found: LessonMatch) -> Iterator[str]:
    lesson = found.lesson
    yield from _head(f"lesson {lesson.id}", found.match, lesson.repo, lesson.status.value)
    yield from _parts({"when": lesson.when, "advice": lesson.advice})


def _head(name: str, match: str, repo: str, more: str) -> Iterator[str]:
    from redstart.core.visible import visible_line

    yield ""
    yield from _wrapped(f"{visible_line(name)}  {match}  {visible_line(repo)}  {more}", "")


def _parts(parts: dict[str, str]) -> Iterator[str]:
    from redstart.core.visible import visible_line

    for name, text in parts.items():
        if text:
            yield from _wrapped(f"  {name + ':':<10}{visible_line(' '.join(text.split()))}", " " * 12)


def _wrapped(text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False) or [text]
