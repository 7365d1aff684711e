"""`redstart runs` and its commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redstart.cli import options
from redstart.cli.output import echo, echo_json

app = typer.Typer(
    help="List, watch, pause, cancel, replay, export and fork runs.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_runs(
    here: Annotated[bool, typer.Option("--here", help="List only runs in this directory.")] = False,
    every: Annotated[bool, typer.Option("--all", help="List child runs too.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="List at most N runs.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead.")] = False,
) -> None:
    """List runs, newest first: state, result, model and cost."""
    import asyncio
    import shutil

    from redstart.app import settings as configuration
    from redstart.app.run_status import list_runs as views_of
    from redstart.app.wire import open_app
    from redstart.cli.run_table import format_run_table

    folder = str(Path.cwd().resolve()) if here else None
    with open_app(configuration.load()) as context:
        views = asyncio.run(views_of(context, folder=folder, limit=limit, include_children=every))
        now = context.moment
    if json:
        for view in views:
            echo_json(view.model_dump_json())
    elif views:
        echo("\n".join(format_run_table(views, now, shutil.get_terminal_size().columns)))
    else:
        echo("There are no runs yet. Try one with: redstart demo")


@app.command("replay")
def replay(
    run: options.RunId = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Repeat a run from its journal, without a model or tokens, and report the first difference."""
    import asyncio
    from contextlib import ExitStack

    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.app.runs import replay as replay_run
    from redstart.app.wire import open_app
    from redstart.cli.display import display
    from redstart.core.frozen import format_count

    with ExitStack() as stack:
        ui = stack.enter_context(display(json=json, verbose=verbose))
        context = stack.enter_context(open_app(configuration.load(), listen=ui))

        async def go() -> str:
            run_id = await find_run(context, run, Path.cwd())
            result = await replay_run(context, run_id)
            counts = f"{format_count(result.steps, 'step')} and {format_count(result.calls, 'call')}"
            return f"replayed {run_id}: {counts} as recorded, 0 tokens spent"

        ui.print_line(asyncio.run(go()), "bold green")


@app.command("export")
def export(
    cassette: Annotated[Path, typer.Option("--cassette", help="Write the model calls to this file.")],
    run: options.RunId = None,
) -> None:
    """Write the model calls of a run to a file. `-m replay:FILE` replays them without a model."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.export import ExportedCassette, export_cassette
    from redstart.app.runs import find_run
    from redstart.app.wire import open_app
    from redstart.core.frozen import format_count

    with open_app(configuration.load()) as context:

        async def go() -> ExportedCassette:
            return await export_cassette(context, await find_run(context, run, Path.cwd()), cassette)

        result = asyncio.run(go())
    echo(f"wrote {format_count(result.calls, 'call')} to {cassette}. Use it with: redstart fix -m replay:{cassette}")
    if result.begins_late:
        echo(f"This run continues run {result.begins_late}, whose calls are not in the file.")


@app.command("fork")
def fork(
    run: options.NamedRunId,
    after: Annotated[options.StepName, typer.Option("--after", help="Keep the steps up to and including this one.")],
    attempt: Annotated[int, typer.Option("--attempt", min=1, help="Attempt that the step belongs to.")] = 1,
    max_attempts: options.MaxAttempts = None,
) -> None:
    """Start a new run from a step of an earlier run, with its model and options."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.app.runs import fork as fork_run
    from redstart.app.wire import open_app
    from redstart.core.run import Step

    with open_app(configuration.load()) as context:

        async def go() -> str:
            run_id = await find_run(context, run, Path.cwd())
            old = await context.adapters.store.load(run_id)
            limits = options.resolve_limits(old.spec.limits, max_attempts)
            new_state = await fork_run(context, run_id, attempt, Step(after.value), limits)
            return new_state.run_id

        echo(f"Forked. Continue with: redstart resume {asyncio.run(go())}")


@app.command("watch")
def watch(run: options.RunId = None, json: options.Json = False, verbose: options.Verbose = False) -> None:
    """Follow a run in another process or on the fleet until it stops or needs input."""
    import asyncio
    from contextlib import ExitStack

    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.app.wire import open_app
    from redstart.cli.display import display
    from redstart.cli.session import DriveMode
    from redstart.cli.watch import watch as follow

    with ExitStack() as stack:
        ui = stack.enter_context(display(json=json, verbose=verbose))
        context = stack.enter_context(open_app(configuration.load()))

        async def go() -> int:
            return await follow(context, await find_run(context, run, Path.cwd()), ui, DriveMode(json, verbose))

        raise typer.Exit(asyncio.run(go()))


@app.command("pause")
def pause(run: options.UnfinishedRunId) -> None:
    """Pause a run after its current step, even if it runs on another machine. `resume` continues it."""
    run_id, _ = _ask(run, "pause")
    echo(f"run {run_id} pauses after its current step. Continue with: redstart resume {run_id}")


@app.command("cancel")
def cancel(run: options.UnfinishedRunId) -> None:
    """Cancel a run at once, even on another machine. Its finished steps are kept; `resume --force` reopens it."""
    run_id, is_cancelled = _ask(run, "cancel")
    if is_cancelled:
        echo(f"run {run_id} is cancelled")
    else:
        echo(f"run {run_id} will be cancelled; its driver has not answered yet. Check with: redstart runs list")


def _ask(run: str, action: str) -> tuple[str, bool]:
    """Tell the run, and the fleet if there is one. Return the run ID and whether the run is cancelled."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.control import ask, await_cancelled
    from redstart.app.fleet import send_signal
    from redstart.app.runs import find_run
    from redstart.app.wire import open_app
    from redstart.core.run_status import Control

    with open_app(configuration.load()) as context:

        async def go() -> tuple[str, bool]:
            run_id, control = await find_run(context, run, Path.cwd()), Control(action)
            await ask(context, run_id, control)
            await send_signal(context.settings, await context.adapters.store.load(run_id), action)
            return run_id, control is Control.cancel and await await_cancelled(context, run_id)

        return asyncio.run(go())


def prune(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, metavar="DAYS", help="Remove only runs that are older than this.")
    ] = 30.0,
    keep: Annotated[int, typer.Option("--keep", min=0, metavar="N", help="Keep the newest N of these runs.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed, and stop.")] = False,
) -> None:
    """Remove old runs that are finished, failed, cancelled or paused, with their records and patches.

    Queued and running runs and runs that need input are kept. The fix cards and lessons of removed runs are kept too.
    """
    import asyncio
    import time

    from redstart.app import settings as configuration
    from redstart.app.prune import prune as prune_runs
    from redstart.core.frozen import format_count

    settings = configuration.load()
    report = asyncio.run(prune_runs(settings, days=older_than, keep=keep, dry=dry_run, now=time.time()))
    did = "would remove" if dry_run else "removed"
    echo(
        f"{did} {format_count(len(report.runs), 'run')}, {report.patches} patch files, "
        f"{format_count(report.blobs, 'blob')} and "
        f"{format_count(report.folders, 'work folder')}: {report.size / 1e6:.1f} MB"
    )
