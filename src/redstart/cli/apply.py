"""`redstart apply` and `redstart undo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.toolkit.repo.handover import FileOutcome, Outcome

_CONFLICT = 1


def apply(
    run: options.RunId = None,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="Make this branch with one commit; the files stay as they are."),
    ] = None,
) -> None:
    """Put a run's verified patch into its folder, merged with your own edits: all of it, or nothing."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.handover import apply_run
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house
    from redstart.toolkit.repo.handover import Happened

    with open_house(configuration.load()) as house:

        async def go() -> tuple[str, Outcome]:
            run_id = await find_run(house, run, Path.cwd())
            return run_id, await apply_run(house, run_id, branch=branch)

        run_id, outcome = asyncio.run(go())
    _print_files(outcome)
    if outcome.happened is Happened.refused:
        typer.echo("nothing was written: the patch conflicts with what is there now", err=True)
        typer.echo(f"see it with: redstart show {run_id}", err=True)
        raise typer.Exit(_CONFLICT)
    if outcome.happened is Happened.already:
        typer.echo("already applied; nothing to do")
    elif branch is not None:
        typer.echo(f"branch {branch}: commit {outcome.commit[:12]}; your files are as they were")
        typer.echo(f"look at it with: git show {branch}")
    else:
        typer.echo(f"applied. Take it back with: redstart undo {run_id}")
    if any(one.what == "merged" for one in outcome.files):
        typer.echo("merged files hold your own changes too, which the run has not seen: run your tests")


def undo(run: options.RunId = None) -> None:
    """Take back what `redstart apply` wrote; what you changed since stays. All of it, or nothing."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.handover import undo_run
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house
    from redstart.toolkit.repo.handover import Happened

    with open_house(configuration.load()) as house:

        async def go() -> tuple[str, Outcome]:
            run_id = await find_run(house, run, Path.cwd())
            return run_id, await undo_run(house, run_id)

        run_id, outcome = asyncio.run(go())
    _print_files(outcome)
    if outcome.happened is Happened.refused:
        typer.echo("nothing was written: what was applied was changed since", err=True)
        raise typer.Exit(_CONFLICT)
    if outcome.happened is Happened.unknown:
        typer.echo(f"nothing to undo: run {run_id} is not applied")
    elif outcome.happened is Happened.already:
        typer.echo("nothing to undo: it was taken back already")
    else:
        typer.echo(f"undone. Put it back with: redstart apply {run_id}")


def _print_files(outcome: Outcome) -> None:
    for one in outcome.files:
        typer.echo(_line(one), err=one.what == "refused")


def _line(one: FileOutcome) -> str:
    """Names that are no valid Unicode are printed with their bytes spelt out."""
    path = one.path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return f"  {one.what:<9} {path}" + (f": {one.reason}" if one.reason else "")
