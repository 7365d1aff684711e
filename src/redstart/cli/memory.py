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
    """Search memory for an error: earlier fixes, failed attempts and lessons. Uses no model.

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
    """Format the results of a search, wrapped at words."""
    from redstart.core.noun import many
    from redstart.core.visible import visible_line

    error = visible_line(found.error)
    if not (found.fixes or found.failures or found.lessons):
        yield from _wrapped(f"no results for: {error}", "")
        yield from _wrapped("hint: each run saves its fixes and failed attempts; list them: redstart memory list", "")
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


app = typer.Typer(
    help="List, search, approve and delete what runs learned.", no_args_is_help=True, rich_markup_mode=None
)

CardId = Annotated[str, typer.Argument(metavar="ID", help="ID of a fix card or lesson, or its beginning.")]
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
    from redstart.cli.memory_text import table, when
    from redstart.core.visible import visible_line

    with open_memory(configuration.load()) as shelf:
        found = asyncio.run(list_cards(shelf, repo=repo, limit=limit))
        lessons = asyncio.run(list_lessons(shelf, repo=repo))[:limit]
    if json:
        for view in (*found, *(LessonView(lesson=lesson) for lesson in lessons)):
            echo_json(view.model_dump_json())
    elif not found and not lessons:
        echo("no fix cards or lessons yet: a run saves a fix card when it ends GREEN")
    else:
        rows = [
            (
                item.id,
                when(item.created.timestamp())[:10],
                f"{item.state.value}, asked" if item.card.asked else item.state.value,
                visible_line(item.repo),
                visible_line(item.card.summary),
            )
            for item in found
        ]
        _print(table(("fix card", "saved", "state", "repo", "summary"), rows, "no fix cards yet"))
        told = [
            (
                item.id,
                item.status.value,
                f"{item.counts.green_when_shown}/{item.counts.shown}",
                f"{item.counts.green_when_withheld}/{item.counts.withheld}",
                "everyone" if item.scope.value == "global" else item.scope.value,
                visible_line(item.repo),
                visible_line(item.when),
            )
            for item in lessons
        ]
        if told:
            head = ("lesson", "status", "solved with", "without", "for", "repo", "when")
            _print(["", *table(head, told)])


@app.command("show")
def show(card: CardId, json: Json = False) -> None:
    """Show a fix card and the runs that saw it, or a lesson and its measured effect."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import is_lesson, show_lesson
    from redstart.app.memory import open_memory, show_card
    from redstart.cli.memory_text import card_lines, lesson_lines

    with open_memory(configuration.load()) as shelf:
        if is_lesson(card):
            told = asyncio.run(show_lesson(shelf, card))
            echo_json(told.model_dump_json(indent=2)) if json else _print(lesson_lines(told))
            return
        found = asyncio.run(show_card(shelf, card))
    echo_json(found.model_dump_json(indent=2)) if json else _print(card_lines(found))


@app.command("approve")
def approve(
    card: CardId,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Your name as approver (default: user name).")] = "",
    scope: Annotated[ScopeName | None, typer.Option("--scope", help="Lessons only: the runs that may see it.")] = None,
) -> None:
    """Show a quarantined fix card to later runs, or a lesson to more runs. Read it first: models will read it too."""
    import asyncio
    from datetime import UTC, datetime

    from redstart.app import settings as configuration
    from redstart.app.lessons import approve_lesson, is_lesson
    from redstart.app.memory import approve_card, open_memory
    from redstart.core.lesson import LessonScope
    from redstart.core.visible import visible_line

    name = by or _user()
    with open_memory(configuration.load()) as shelf:
        if is_lesson(card):
            wider = LessonScope(scope.value) if scope else None
            lesson = asyncio.run(approve_lesson(shelf, card, by=name, scope=wider))
            who = {"repo": f"its repo {visible_line(lesson.repo)}", "tenant": "all of your repos", "global": "everyone"}
            echo(f"lesson {lesson.id} is for {who[lesson.scope.value]}, approved by {visible_line(name)}")
            echo("Its effect is measured from now on: half of the runs that it applies to see it.")
            return
        if scope is not None:
            raise typer.BadParameter("--scope applies only to lessons")
        found = asyncio.run(approve_card(shelf, card, by=name, now=datetime.now(UTC)))
    said = found.card.provenance.get("approved_by")
    echo(f"fix card {found.id} is shown to later runs{f', approved by {visible_line(said)}' if said else ''}")


@app.command("forget")
def forget(card: CardId) -> None:
    """Delete a fix card, a lesson or a failed attempt, and the run records that quote it. This cannot be undone."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import forget_lesson, is_lesson
    from redstart.app.memory import forget_learned, open_memory
    from redstart.core.noun import many

    of_lesson = is_lesson(card)
    with open_memory(configuration.load()) as shelf:
        gone = asyncio.run(forget_lesson(shelf, card) if of_lesson else forget_learned(shelf, card))
    notes = f" and {many(gone.notes, 'note')} of manual answers" if gone.notes else ""
    echo(f"removed {gone.kind} {gone.name} and {many(gone.blobs, 'record')} of runs that quoted it{notes}")
    echo("Runs that made or saw it can still be shown, but no longer replayed or exported.")
    for path in gone.left:
        echo(f"not removed: {path} contains the same text")


app.command("search")(search)


@app.command("stats")
def stats(json: Json = False) -> None:
    """Count fix cards, lessons and failed attempts, and show how often cards were recalled."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import list_lessons
    from redstart.app.memory import memory_stats, open_memory
    from redstart.cli.memory_text import count_lines

    with open_memory(configuration.load()) as shelf:
        lessons = asyncio.run(list_lessons(shelf))
        found = asyncio.run(memory_stats(shelf, lessons))
    echo_json(found.model_dump_json()) if json else _print(count_lines(found))


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

    with open_memory(configuration.load()) as shelf:
        written = write_skill(asyncio.run(list_lessons(shelf, repo=repo)), skill)
    echo(f"wrote {written}")


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
    from redstart.core.noun import many

    with open_memory(configuration.load()) as shelf:
        done = asyncio.run(mirror_graph(shelf, url, database, os.environ))
    gone = f"; removed {many(done.removed, 'forgotten card')}" if done.removed else ""
    echo(f"the copy has {many(done.nodes, 'node')} and {many(done.edges, 'edge')}{gone}")


def _ask(*, files: bool, signature: str, types: bool, repo: str | None, limit: int, json: bool) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.memory import Questions, ask_graph, open_memory
    from redstart.cli.memory_text import file_lines, fix_lines, type_lines

    asked = Questions(files=files, signature=signature, types=types, repo=repo, limit=limit)
    with open_memory(configuration.load()) as shelf:
        found = asyncio.run(ask_graph(shelf, asked))
    if json:
        echo_json(found.model_dump_json(exclude_none=True))
        return
    if found.files is not None:
        _print(file_lines(found.files))
    if found.fixes is not None:
        _print(fix_lines(found.fixes, signature))
    if found.types is not None:
        _print(type_lines(found.types))


def _export(form: FormName, out: Path | None, repo: str | None) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.graph_export import GraphFormat, exported, write_graph
    from redstart.app.memory import open_memory, whole_graph
    from redstart.core.noun import many

    with open_memory(configuration.load()) as shelf:
        drawn = asyncio.run(whole_graph(shelf, repo=repo))
    if out is None:
        for line in exported(drawn, GraphFormat(form.value)):
            echo_output(f"{line}\n")
        return
    write_graph(drawn, GraphFormat(form.value), out)
    echo(f"wrote {many(len(drawn.nodes), 'node')} and {many(len(drawn.links), 'edge')} to {out}")


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        echo(line)


def _user() -> str:
    """Return the name of the user, or an empty string if the system has none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
