"""`redstart apply` and `redstart undo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.output import confirm, echo

if TYPE_CHECKING:
    from redstart.app.handover import PartialPatch
    from redstart.toolkit.repo.handover import FileOutcome, HandoverOutcome

_CONFLICT = 1
_DECLINED = 1
_MOST_TESTS = 20
"""Failing tests that are listed before a person decides about a partial patch."""


def apply(
    run: options.RunId = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch", metavar="NAME", help="Commit the patch on this new branch; your files stay as they are."
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Apply the patch without asking, even if it leaves some tests failing.")
    ] = False,
) -> None:
    """Apply a run's verified patch to your files, and keep your own edits. If a file conflicts, nothing is written."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.handover import apply_run, find_partial_patch
    from redstart.app.runs import find_run
    from redstart.app.wire import open_app

    with open_app(configuration.load()) as app:
        run_id = asyncio.run(find_run(app, run, Path.cwd()))
        can_ask = not partial and options.can_ask_user(silent=False)
        partial_patch = asyncio.run(find_partial_patch(app, run_id)) if can_ask else None
        if partial_patch is not None:
            partial = _ask_to_apply_part(run_id, partial_patch)
            if not partial:
                echo("Nothing was applied.")
                raise typer.Exit(_DECLINED)
        outcome = asyncio.run(apply_run(app, run_id, branch=branch, allow_partial=partial))
    raise typer.Exit(report_applied(run_id, outcome, branch))


def _ask_to_apply_part(run_id: str, patch: PartialPatch) -> bool:
    """Show what a partial patch changes and which tests it leaves failing, and ask whether to apply it."""
    from redstart.cli.display import Terminal
    from redstart.cli.run_summary import print_diff, print_headline
    from redstart.core.frozen import format_count

    screen = Terminal()
    print_headline(screen, "partial", patch.reason)
    print_diff(screen, patch.diff, run_id)
    for test in patch.failing_tests[:_MOST_TESTS]:
        screen.print_line(f"still fails: {test}", hang=4)
    hidden_count = len(patch.failing_tests) - _MOST_TESTS
    if hidden_count > 0:
        screen.print_line(f"and {format_count(hidden_count, 'more failing test')}")
    return confirm("Apply this patch, and leave these tests as they are?", default=False)


def report_applied(run_id: str, outcome: HandoverOutcome, branch: str | None = None) -> int:
    """Print the outcome for each file and what to do next. Return the exit code."""
    from redstart.toolkit.repo.handover import HandoverEvent

    _print_files(outcome)
    if outcome.happened is HandoverEvent.refused:
        echo("error: the patch conflicts with your files; nothing was written", err=True)
        echo(f"hint: compare with the patch: redstart show {run_id}", err=True)
        return _CONFLICT
    if outcome.happened is HandoverEvent.already:
        echo("Already applied: nothing to do.")
    elif branch is not None:
        echo(f"Committed {outcome.commit[:12]} on branch {branch}; your files are unchanged.")
        echo(f"Show it with: git show {branch}")
    else:
        echo(f"Applied. Undo with: redstart undo {run_id}")
    if any(file.what == "merged" for file in outcome.files):
        echo("Merged files also contain your own changes, which the run did not test: run your tests.")
    return 0


def undo(run: options.RunId = None) -> None:
    """Undo what `redstart apply` wrote and keep your later edits. If a file conflicts, nothing is written."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.handover import undo_run
    from redstart.app.runs import find_run
    from redstart.app.wire import open_app
    from redstart.toolkit.repo.handover import HandoverEvent

    with open_app(configuration.load()) as app:

        async def go() -> tuple[str, HandoverOutcome]:
            run_id = await find_run(app, run, Path.cwd())
            return run_id, await undo_run(app, run_id)

        run_id, outcome = asyncio.run(go())
    _print_files(outcome)
    if outcome.happened is HandoverEvent.refused:
        echo("error: the applied lines have changed since then; nothing was written", err=True)
        echo("hint: undo your edits to these lines first, or use git", err=True)
        raise typer.Exit(_CONFLICT)
    if outcome.happened is HandoverEvent.unknown:
        echo(f"Nothing to undo: run {run_id} is not applied.")
    elif outcome.happened is HandoverEvent.already:
        echo("Nothing to undo: the patch is already undone.")
    else:
        echo(f"Undone. Apply again with: redstart apply {run_id}")


def _print_files(outcome: HandoverOutcome) -> None:
    for file in outcome.files:
        echo(_format_line(file), err=file.what == "refused")


def _format_line(file: FileOutcome) -> str:
    """Format the outcome of one file. Bytes of its name that are not valid Unicode are escaped."""
    path = file.path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return f"  {file.what:<9} {path}" + (f": {file.reason}" if file.reason else "")
