"""`redstart memory`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli.output import echo, echo_json, echo_output

if TYPE_CHECKING:
    from redstart.app.memory_search import FailureMatch, FixMatch, LessonMatch, MemoryAnswer


WIDTH = 80


def search(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help="Error message or pasted traceback; reads standard input if it is - or missing."
        ),
    ] = None,
    repo: Annotated[str | None, typer.Option("--repo", metavar="NAME", help="Search only this repo.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most N results of each kind.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Search memory for an error: earlier fixes, failed attempts and lessons. Uses no model."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.memory import open_memory
    from redstart.app.memory_search import search_memory

    typed_text = " ".join(text or ())
    query_text = sys.stdin.read() if typed_text in ("", "-") else typed_text
    with open_memory(configuration.load()) as memory:
        answer = asyncio.run(search_memory(memory, query_text, root=Path.cwd(), repo=repo, limit=limit))
    if json:
        echo_json(answer.model_dump_json(indent=2))
        return
    for line in answer_lines(answer):
        echo(line)


def answer_lines(answer: MemoryAnswer) -> Iterator[str]:
    """Format the results of a search, wrapped at words."""
    from redstart.core.frozen import format_count
    from redstart.core.safe_text import escape_line

    error = escape_line(answer.error)
    if not (answer.fixes or answer.failures or answer.lessons):
        yield from _wrap_text(f"no results for: {error}", "")
        yield from _wrap_text("hint: each run saves its fixes and failed attempts; list them: redstart memory list", "")
        return
    fixes = "1 fix" if len(answer.fixes) == 1 else f"{len(answer.fixes)} fixes"
    counts = (fixes, format_count(len(answer.failures), "failed attempt"), format_count(len(answer.lessons), "lesson"))
    yield from _wrap_text(f"{counts[0]}, {counts[1]} and {counts[2]} for: {error}", "")
    for fix in answer.fixes:
        yield from _fix(fix)
    for failure in answer.failures:
        yield from _format_failure(failure)
    for lesson in answer.lessons:
        yield from _format_lesson(lesson)


def _fix(match: FixMatch) -> Iterator[str]:
    card = match.card
    yield from _format_head(f"fix {card.id}", match.match, match.repo, f"{match.created.astimezone():%Y-%m-%d}")
    yield from _format_parts({"what": card.summary, "cause": card.root_cause, "fix": card.fix})


def _format_failure(match: FailureMatch) -> Iterator[str]:
    record = match.failure
    yield from _format_head(
        f"failed attempt {record.id}", match.match, match.repo, f"{match.created.astimezone():%Y-%m-%d}"
    )
    attempt_text = record.tried or ", ".join(record.files)
    yield from _format_parts(
        {"tried": attempt_text, "failed": record.what_failed, "cause": record.root_cause, "try next": record.try_next}
    )


def _format_lesson(match: LessonMatch) -> Iterator[str]:
    lesson = match.lesson
    yield from _format_head(f"lesson {lesson.id}", match.match, lesson.repo, lesson.status.value)
    yield from _format_parts({"when": lesson.when, "advice": lesson.advice})


def _format_head(name: str, match: str, repo: str, detail: str) -> Iterator[str]:
    from redstart.core.safe_text import escape_line

    yield ""
    yield from _wrap_text(f"{escape_line(name)}  {match}  {escape_line(repo)}  {detail}", "")


def _format_parts(parts: dict[str, str]) -> Iterator[str]:
    from redstart.core.safe_text import escape_line

    for name, text in parts.items():
        if text:
            yield from _wrap_text(f"  {name + ':':<10}{escape_line(' '.join(text.split()))}", " " * 12)


def _wrap_text(text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False) or [text]


app = typer.Typer(
    help="List, search, approve and delete what runs learned.", no_args_is_help=True, rich_markup_mode=None
)

CardId = Annotated[str, typer.Argument(metavar="ID", help="ID of a fix card or lesson, or its first characters.")]
Repo = Annotated[str | None, typer.Option("--repo", metavar="NAME", help="Only this repo.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


class ScopeName(StrEnum):
    """Copies the names of `LessonScope`, for the same reason as below."""

    repo = "repo"
    tenant = "tenant"
    everyone = "global"


class FormName(StrEnum):
    """Copies the names of `GraphFormat`: its import is slow, and help must be fast. A test compares them."""

    json = "json"
    graphml = "graphml"
    cypher = "cypher"


@app.command("list")
def list_memory(
    repo: Repo = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="List at most N of each kind.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead.")] = False,
) -> None:
    """List fix cards and lessons, newest first, including quarantined ones."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import LessonView, list_lessons
    from redstart.app.memory import list_cards, open_memory
    from redstart.cli.memory_text import format_table, format_time
    from redstart.core.safe_text import escape_line

    with open_memory(configuration.load()) as memory:
        cards = asyncio.run(list_cards(memory, repo=repo, limit=limit))
        lessons = asyncio.run(list_lessons(memory, repo=repo))[:limit]
    if json:
        for view in (*cards, *(LessonView(lesson=lesson) for lesson in lessons)):
            echo_json(view.model_dump_json())
    elif not cards and not lessons:
        echo("no fix cards or lessons yet: a run saves a fix card when it ends GREEN")
    else:
        rows = [
            (
                item.id,
                format_time(item.created.timestamp())[:10],
                f"{item.state.value}, asked" if item.card.asked else item.state.value,
                escape_line(item.repo),
                escape_line(item.card.summary),
            )
            for item in cards
        ]
        _print(format_table(("fix card", "saved", "state", "repo", "summary"), rows, "no fix cards yet"))
        lesson_rows = [
            (
                item.id,
                item.status.value,
                f"{item.counts.green_when_shown}/{item.counts.shown}",
                f"{item.counts.green_when_withheld}/{item.counts.withheld}",
                "everyone" if item.scope.value == "global" else item.scope.value,
                escape_line(item.repo),
                escape_line(item.when),
            )
            for item in lessons
        ]
        if lesson_rows:
            head = ("lesson", "status", "solved with", "without", "for", "repo", "when")
            _print(["", *format_table(head, lesson_rows)])


@app.command("show")
def show(card: CardId, json: Json = False) -> None:
    """Show a fix card and the runs that saw it, or a lesson and its measured effect."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import is_lesson, show_lesson
    from redstart.app.memory import open_memory, show_card
    from redstart.cli.memory_text import card_lines, lesson_lines

    with open_memory(configuration.load()) as memory:
        if is_lesson(card):
            lesson_story = asyncio.run(show_lesson(memory, card))
            echo_json(lesson_story.model_dump_json(indent=2)) if json else _print(lesson_lines(lesson_story))
            return
        card_story = asyncio.run(show_card(memory, card))
    echo_json(card_story.model_dump_json(indent=2)) if json else _print(card_lines(card_story))


@app.command("approve")
def approve(
    card: CardId,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="Name of the approver (default: your user name).")
    ] = "",
    scope: Annotated[ScopeName | None, typer.Option("--scope", help="Lessons only: the runs that may see it.")] = None,
) -> None:
    """Show a quarantined fix card to later runs, or a lesson to more runs. Read it first: models will read it too."""
    import asyncio
    from datetime import UTC, datetime

    from redstart.app import settings as configuration
    from redstart.app.lessons import approve_lesson, is_lesson
    from redstart.app.memory import approve_card, open_memory
    from redstart.core.lesson import LessonScope
    from redstart.core.safe_text import escape_line

    name = by or _get_user_name()
    with open_memory(configuration.load()) as memory:
        if is_lesson(card):
            lesson_scope = LessonScope(scope.value) if scope else None
            lesson = asyncio.run(approve_lesson(memory, card, approver=name, scope=lesson_scope))
            audience = {
                "repo": f"its repo {escape_line(lesson.repo)}",
                "tenant": "all of your repos",
                "global": "everyone",
            }
            echo(f"lesson {lesson.id} is for {audience[lesson.scope.value]}, approved by {escape_line(name)}")
            echo("Its effect is measured from now on: half of the runs that it applies to see it.")
            return
        if scope is not None:
            raise typer.BadParameter("--scope applies only to lessons")
        card_view = asyncio.run(approve_card(memory, card, approver=name, now=datetime.now(UTC)))
    approved_by = card_view.card.provenance.get("approved_by")
    echo(
        f"fix card {card_view.id} is shown to later "
        f"runs{f', approved by {escape_line(approved_by)}' if approved_by else ''}"
    )


@app.command("forget")
def forget(card: CardId) -> None:
    """Delete a fix card, a lesson or a failed attempt, and the run records that quote it. This cannot be undone."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import forget_lesson, is_lesson
    from redstart.app.memory import forget_learned, open_memory
    from redstart.core.frozen import format_count

    is_lesson_id = is_lesson(card)
    with open_memory(configuration.load()) as memory:
        report = asyncio.run(forget_lesson(memory, card) if is_lesson_id else forget_learned(memory, card))
    notes = f" and {format_count(report.notes, 'note')} of manual answers" if report.notes else ""
    echo(
        f"removed {report.kind} {report.name} and {format_count(report.blobs, 'record')} of runs that quoted it{notes}"
    )
    echo("Runs that made or saw it can still be shown, but no longer replayed or exported.")
    for path in report.remaining_files:
        echo(f"not removed: {path} contains the same text")


app.command("search")(search)


@app.command("stats")
def stats(json: Json = False) -> None:
    """Count fix cards, lessons and failed attempts, and show how often cards were recalled."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import list_lessons
    from redstart.app.memory import compute_memory_stats, open_memory
    from redstart.cli.memory_text import count_lines

    with open_memory(configuration.load()) as memory:
        lessons = asyncio.run(list_lessons(memory))
        summary = asyncio.run(compute_memory_stats(memory, lessons))
    echo_json(summary.model_dump_json()) if json else _print(count_lines(summary))


@app.command("export")
def export_skill(
    skill: Annotated[Path, typer.Option("--skill", metavar="DIR", help="Directory to write SKILL.md to.")],
    repo: Repo = None,
) -> None:
    """Write the lessons with a measured benefit to SKILL.md, for agents that read such files."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import list_lessons, write_skill
    from redstart.app.memory import open_memory

    with open_memory(configuration.load()) as memory:
        path = write_skill(asyncio.run(list_lessons(memory, repo=repo)), skill)
    echo(f"wrote {path}")


@app.command("graph")
def graph(
    files: Annotated[bool, typer.Option("--files", help="Show the files with the most failed attempts.")] = False,
    signature: Annotated[
        str,
        typer.Option(
            "--signature", metavar="KEY", help="Show the fixes of this failure; `memory show` prints its key."
        ),
    ] = "",
    types: Annotated[bool, typer.Option("--types", help="Show exception types by repo and month.")] = False,
    export: Annotated[FormName | None, typer.Option("--export", help="Write the whole graph in this format.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="File to write (default: stdout).")] = None,
    repo: Repo = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most N rows of each table.")] = 20,
    json: Json = False,
) -> None:
    """Query the graph of runs, files, failures and fixes; by default, show which files fail and how."""
    if export is not None:
        if files or signature or types or json:
            raise typer.BadParameter("--export writes the whole graph; leave out the queries and --json")
        _export(export, out, repo)
        return
    if out is not None:
        raise typer.BadParameter("--out needs --export")
    none = not (files or signature or types)
    _ask(files=files or none, signature=signature, types=types or none, repo=repo, limit=limit, json=json)


@app.command("mirror")
def mirror(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL of the graph database, such as bolt://host:7687.")],
    database: Annotated[str, typer.Option("--database", metavar="NAME", help="Database on that server.")] = "",
) -> None:
    """Copy the graph to Neo4j, or update the copy. Set NEO4J_USERNAME and NEO4J_PASSWORD to log in."""
    import asyncio
    import os

    from redstart.app import settings as configuration
    from redstart.app.memory import mirror_graph, open_memory
    from redstart.core.frozen import format_count

    with open_memory(configuration.load()) as memory:
        counts = asyncio.run(mirror_graph(memory, url, database, os.environ))
    removed_text = f"; removed {format_count(counts.removed, 'forgotten card')}" if counts.removed else ""
    echo(f"the copy has {format_count(counts.nodes, 'node')} and {format_count(counts.edges, 'edge')}{removed_text}")


def _ask(*, files: bool, signature: str, types: bool, repo: str | None, limit: int, json: bool) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.memory import Questions, ask_graph, open_memory
    from redstart.cli.memory_text import file_lines, fix_lines, type_lines

    questions = Questions(files=files, signature=signature, types=types, repo=repo, limit=limit)
    with open_memory(configuration.load()) as memory:
        answers = asyncio.run(ask_graph(memory, questions))
    if json:
        echo_json(answers.model_dump_json(exclude_none=True))
        return
    if answers.files is not None:
        _print(file_lines(answers.files))
    if answers.fixes is not None:
        _print(fix_lines(answers.fixes, signature))
    if answers.types is not None:
        _print(type_lines(answers.types))


def _export(form: FormName, out: Path | None, repo: str | None) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.graph_export import GraphFormat, render_graph, write_graph
    from redstart.app.memory import load_graph, open_memory
    from redstart.core.frozen import format_count

    with open_memory(configuration.load()) as memory:
        full_graph = asyncio.run(load_graph(memory, repo=repo))
    if out is None:
        for line in render_graph(full_graph, GraphFormat(form.value)):
            echo_output(f"{line}\n")
        return
    write_graph(full_graph, GraphFormat(form.value), out)
    echo(
        f"wrote {format_count(len(full_graph.nodes), 'node')} and "
        f"{format_count(len(full_graph.links), 'edge')} to {out}"
    )


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        echo(line)


def _get_user_name() -> str:
    """Return the name of the user, or an empty string if the system has none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
