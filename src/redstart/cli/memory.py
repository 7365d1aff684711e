"""`redstart memory`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from redstart.app.lessons import LessonStory
    from redstart.app.memory import CardStory, MemoryStats
    from redstart.core.graph import FailingFile, KnownFix, TypeInMonth

app = typer.Typer(
    help="Look at what was learned, approve it or forget it.", no_args_is_help=True, rich_markup_mode=None
)

CardId = Annotated[str, typer.Argument(metavar="ID", help="Id of a card or a lesson, or its beginning.")]
Repo = Annotated[str | None, typer.Option("--repo", metavar="NAME", help="Only of the repo of this name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]


class ScopeName(StrEnum):
    """The scopes again, as below."""

    repo = "repo"
    tenant = "tenant"
    everyone = "global"


class FormName(StrEnum):
    """The formats again: importing the real ones takes long, and help must not. A test compares them."""

    json = "json"
    graphml = "graphml"
    cypher = "cypher"


@app.command("list")
def list_memory(
    repo: Repo = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at the most.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead.")] = False,
) -> None:
    """List the cards and lessons that verified runs left, newest first, and those in quarantine."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import LessonView, list_lessons
    from redstart.app.memory import list_cards, open_memory
    from redstart.app.proof_text import visible

    with open_memory(configuration.load()) as shelf:
        found = asyncio.run(list_cards(shelf, repo=repo, limit=limit))
        lessons = asyncio.run(list_lessons(shelf, repo=repo))[:limit]
    if json:
        _print(one.model_dump_json() for one in (*found, *(LessonView(lesson=one) for one in lessons)))
    elif not found and not lessons:
        typer.echo("nothing was learned yet; a run that fixes something leaves a card")
    else:
        rows = [
            (one.id, _when(one.created.timestamp()), one.state.value, visible(one.repo), visible(one.card.summary)[:60])
            for one in found
        ]
        _print(_table(("card", "since", "state", "repo", "what it says"), rows, "there is no card"))
        told = [
            (
                one.id,
                one.status.value,
                f"{one.counts.green_when_shown}/{one.counts.shown}",
                f"{one.counts.green_when_withheld}/{one.counts.withheld}",
                "everyone" if one.scope.value == "global" else one.scope.value,
                visible(one.repo),
                visible(one.when)[:60],
            )
            for one in lessons
        ]
        if told:
            head = ("lesson", "status", "green with", "without", "for", "repo", "when")
            _print(["", *_table(head, told)])


@app.command("show")
def show(card: CardId, json: Json = False) -> None:
    """Show all that a card says and which runs it was shown to; of a lesson, what it was measured to be worth."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import is_lesson, show_lesson
    from redstart.app.memory import open_memory, show_card

    with open_memory(configuration.load()) as shelf:
        if is_lesson(card):
            told = asyncio.run(show_lesson(shelf, card))
            _print([told.model_dump_json(indent=2)] if json else _lesson(told))
            return
        found = asyncio.run(show_card(shelf, card))
    _print([found.model_dump_json(indent=2)] if json else _story(found))


@app.command("approve")
def approve(
    card: CardId,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who approves (default: your user name).")] = "",
    scope: Annotated[
        ScopeName | None, typer.Option("--scope", help="Of a lesson: who is shown it from now on, not fewer than now.")
    ] = None,
) -> None:
    """Have what is in quarantine shown to later runs, or a lesson to more. Read it first: models are told it."""
    import asyncio
    from datetime import UTC, datetime

    from redstart.app import settings as configuration
    from redstart.app.lessons import approve_lesson, is_lesson
    from redstart.app.memory import approve_card, open_memory
    from redstart.app.proof_text import visible
    from redstart.core.lesson import Scope

    name = by or _user()
    with open_memory(configuration.load()) as shelf:
        if is_lesson(card):
            wider = Scope(scope.value) if scope else None
            lesson = asyncio.run(approve_lesson(shelf, card, by=name, scope=wider))
            who = {"repo": f"its repo {visible(lesson.repo)}", "tenant": "all of your repos", "global": "everyone"}
            typer.echo(f"lesson {lesson.id} is for {who[lesson.scope.value]}, approved by {visible(name)}")
            typer.echo("Its worth is measured anew: it is shown to half of the runs that it applies to.")
            return
        if scope is not None:
            raise typer.BadParameter("--scope is for lessons")
        found = asyncio.run(approve_card(shelf, card, by=name, now=datetime.now(UTC)))
    said = found.card.provenance.get("approved_by")
    typer.echo(f"card {found.id} is shown to later runs{f', approved by {visible(said)}' if said else ''}")


@app.command("forget")
def forget(card: CardId) -> None:
    """Remove a card or a lesson and its words from all that redstart keeps. It cannot be taken back."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import forget_lesson, is_lesson
    from redstart.app.memory import forget_card, open_memory

    of_lesson = is_lesson(card)
    with open_memory(configuration.load()) as shelf:
        gone = asyncio.run(forget_lesson(shelf, card) if of_lesson else forget_card(shelf, card))
    notes = f" and {gone.notes} notes of answers by hand" if gone.notes else ""
    what = "lesson" if of_lesson else "card"
    typer.echo(f"forgot {what} {gone.name}; with it went {gone.blobs} parts of runs in which it was told{notes}")
    typer.echo("The runs that made or saw it can be shown as before, and not be replayed or exported.")
    for path in gone.left:
        typer.echo(f"the same words also stand in {path}, which was left")


@app.command("stats")
def stats(json: Json = False) -> None:
    """Say how much was learned, where, and how often it was recalled."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import list_lessons
    from redstart.app.memory import memory_stats, open_memory

    with open_memory(configuration.load()) as shelf:
        lessons = asyncio.run(list_lessons(shelf))
        found = asyncio.run(memory_stats(shelf, lessons))
    _print([found.model_dump_json()] if json else _counted(found))


@app.command("export")
def export_skill(
    skill: Annotated[Path, typer.Option("--skill", metavar="DIR", help="A folder; SKILL.md is written into it.")],
    repo: Repo = None,
) -> None:
    """Write the lessons that are known to help as a skill, for agents that read such files."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.lessons import list_lessons, write_skill
    from redstart.app.memory import open_memory

    with open_memory(configuration.load()) as shelf:
        written = write_skill(asyncio.run(list_lessons(shelf, repo=repo)), skill)
    typer.echo(f"wrote {written}")


@app.command("graph")
def graph(
    files: Annotated[bool, typer.Option("--files", help="The files that most failed attempts had to do with.")] = False,
    signature: Annotated[
        str, typer.Option("--signature", metavar="KEY", help="The fixes of this failure, as `memory show` names it.")
    ] = "",
    types: Annotated[bool, typer.Option("--types", help="The kinds of exceptions, by repo and month.")] = False,
    export: Annotated[FormName | None, typer.Option("--export", help="Write all of it, for another program.")] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to (default: the screen).")] = None,
    repo: Repo = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many rows of each at the most.")] = 20,
    json: Json = False,
) -> None:
    """Ask what belongs together in what runs left; without a question, which files fail and how."""
    if export is not None:
        if files or signature or types or json:
            raise typer.BadParameter("an export is all of it: leave out the questions and --json")
        _export(export, out, repo)
        return
    if out is not None:
        raise typer.BadParameter("--out is for --export")
    none = not (files or signature or types)
    _ask(files=files or none, signature=signature, types=types or none, repo=repo, limit=limit, json=json)


@app.command("mirror")
def mirror(
    url: Annotated[str, typer.Argument(metavar="URL", help="A graph database, as bolt://host:7687.")],
    database: Annotated[str, typer.Option("--database", metavar="NAME", help="Which of the server's.")] = "",
) -> None:
    """Copy the graph to Neo4j, or bring the copy up to date. NEO4J_USERNAME and NEO4J_PASSWORD say who you are."""
    import asyncio
    import os

    from redstart.app import settings as configuration
    from redstart.app.memory import mirror_graph, open_memory

    with open_memory(configuration.load()) as shelf:
        done = asyncio.run(mirror_graph(shelf, url, database, os.environ))
    gone = f"; {done.removed} forgotten cards removed" if done.removed else ""
    typer.echo(f"{done.nodes} nodes and {done.edges} edges are in the copy{gone}")


def _ask(*, files: bool, signature: str, types: bool, repo: str | None, limit: int, json: bool) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.memory import Questions, ask_graph, open_memory

    asked = Questions(files=files, signature=signature, types=types, repo=repo, limit=limit)
    with open_memory(configuration.load()) as shelf:
        found = asyncio.run(ask_graph(shelf, asked))
    if json:
        typer.echo(found.model_dump_json(exclude_none=True))
        return
    if found.files is not None:
        _print(_files(found.files))
    if found.fixes is not None:
        _print(_fixes(found.fixes, signature))
    if found.types is not None:
        _print(_types(found.types))


def _export(form: FormName, out: Path | None, repo: str | None) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.graph_export import Format, exported, write_graph
    from redstart.app.memory import open_memory, whole_graph

    with open_memory(configuration.load()) as shelf:
        drawn = asyncio.run(whole_graph(shelf, repo=repo))
    if out is None:
        _print(exported(drawn, Format(form.value)))
        return
    write_graph(drawn, Format(form.value), out)
    typer.echo(f"{len(drawn.nodes)} nodes and {len(drawn.links)} edges in {out}")


def _story(found: CardStory) -> Iterable[str]:
    from redstart.app.proof_text import visible

    card = found.card
    yield f"card {found.id}  {found.state.value}  {visible(found.repo)}  {_when(found.created.timestamp())}"
    told = {
        "what": card.summary,
        "cause": card.root_cause,
        "fix": card.fix,
        "proof": card.verification,
        "outcome": card.outcome,
        "files": ", ".join(card.files_changed),
        "test": card.test_id,
        "failure": card.error_signature,
        "kind": card.family,
    }
    told |= {f"step {number}": step for number, step in enumerate(card.debug_steps, 1)}
    told |= {name.replace("_", " "): said for name, said in card.provenance.items()}
    yield from (f"  {name:<12} {visible(said)}" for name, said in told.items() if said)
    yield f"  {'shown to':<12} {', '.join(found.recalled_by) or 'no run yet'}"


def _lesson(found: LessonStory) -> Iterable[str]:
    from redstart.app.proof_text import visible

    lesson, worth = found.lesson, found.worth
    yield f"lesson {lesson.id}  {lesson.status.value}  {visible(lesson.repo)}  {_when(lesson.made_at)}"
    measured = f"{worth.estimate:+.0f} points of green, between {worth.low:+.0f} and {worth.high:+.0f}"
    told = {
        "when": lesson.when,
        "advice": lesson.advice,
        "for": {"repo": "its repo", "tenant": "all of your repos", "global": "everyone"}[lesson.scope.value],
        "why": lesson.reason,
        "worth": f"{measured}, by {worth.runs} runs" if worth.runs else "not measured yet",
        "chance": f"{worth.helps:.0%} that it helps, {worth.harms:.0%} that it harms, with its kind in mind",
        "with it": f"{lesson.counts.green_when_shown} of {lesson.counts.shown} runs green",
        "without it": f"{lesson.counts.green_when_withheld} of {lesson.counts.withheld} runs green",
        "taught by": ", ".join((lesson.provenance.run, *lesson.sources)),
        "model": lesson.provenance.model,
        "approved by": lesson.approved_by,
    }
    yield from (f"  {name:<12} {visible(said)}" for name, said in told.items() if said)


def _counted(found: MemoryStats) -> Iterable[str]:
    from redstart.app.proof_text import visible

    def counts(told: dict[str, int]) -> str:
        return ", ".join(f"{visible(name)} {count}" for name, count in told.items()) or "none"

    yield f"{'cards':<24} {found.cards}"
    yield f"{'  by state':<24} {counts(found.states)}"
    yield f"{'  by repo':<24} {counts(found.repos)}"
    yield f"{'lessons':<24} {counts(found.lessons)}"
    yield f"{'failures kept':<24} {found.failures}"
    yield f"{'cards recalled':<24} {found.recalled}, by {found.recalling_runs} runs that are still kept"
    yield from (f"{f'  {visible(one.card)}':<24} {one.runs} runs" for one in found.often)


def _files(found: Sequence[FailingFile]) -> Iterable[str]:
    from redstart.app.proof_text import visible

    rows = [(str(one.attempts), str(one.runs), visible(one.repo), visible(one.path)) for one in found]
    yield from _table(("failed attempts", "runs", "repo", "file"), rows, "no attempt has failed yet")


def _fixes(found: Sequence[KnownFix], signature: str) -> Iterable[str]:
    from redstart.app.proof_text import visible

    rows = [
        (
            one.card,
            _when(one.created),
            one.state,
            visible(one.repo),
            ", ".join(map(visible, one.files)),
            visible(one.summary)[:60],
        )
        for one in found
    ]
    head = ("card", "since", "state", "repo", "files", "what it says")
    yield from _table(head, rows, f"no fix of {visible(signature)} is known")


def _types(found: Sequence[TypeInMonth]) -> Iterable[str]:
    from redstart.app.proof_text import visible

    rows = [(one.month, str(one.runs), visible(one.repo), visible(one.type)) for one in found]
    yield from _table(("month", "runs", "repo", "type"), rows, "no exception was met yet")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], nothing: str = "") -> Iterable[str]:
    """Columns as wide as what is in them; `nothing` where there are no rows."""
    if not rows:
        return [nothing]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _when(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _user() -> str:
    """The user's name; empty where the system knows none."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
