"""`redstart runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redstart.cli import options

app = typer.Typer(
    help="List, watch, pause, cancel, replay, export and fork runs.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list")
def list_runs(
    here: Annotated[bool, typer.Option("--here", help="Only runs of this folder.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also runs that are a part of another.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at the most.")] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON Lines instead.")] = False,
) -> None:
    """List runs, newest first."""
    import asyncio
    import json as encoder

    from redstart.app import settings as configuration
    from redstart.app.wire import open_house

    folder = str(Path.cwd().resolve()) if here else None
    with open_house(configuration.load()) as house:
        rows = asyncio.run(house.adapters.store.runs(folder=folder, limit=limit, errands=every))
    if not rows and not json:
        typer.echo("no runs yet; try: redstart demo")
    for row in rows:
        if json:
            typer.echo(encoder.dumps(row._asdict(), default=str))
        else:
            when = row.created.astimezone().strftime("%Y-%m-%d %H:%M")
            typer.echo(
                f"{row.run_id}  {when}  {row.mode:<7} {row.result or row.status:<14} {row.repo}  {row.goal[:60]}"
            )


@app.command("replay")
def replay(
    run: options.RunId = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
) -> None:
    """Do a run once more from its record alone: no model, no tokens; say where it differs, if it does."""
    import asyncio
    from contextlib import ExitStack

    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.app.runs import replay as replay_run
    from redstart.app.wire import open_house
    from redstart.cli.display import display

    with ExitStack() as stack:
        shown = stack.enter_context(display(json=json, verbose=verbose))
        house = stack.enter_context(open_house(configuration.load(), listen=shown))

        async def go() -> str:
            run_id = await find_run(house, run, Path.cwd())
            done = await replay_run(house, run_id)
            return f"replayed {run_id}: {done.steps} steps and {done.calls} calls as recorded, 0 tokens spent"

        shown.say(asyncio.run(go()), "bold green")


@app.command("export")
def export(
    cassette: Annotated[
        Path, typer.Option("--cassette", help="File for what the models were asked and what they answered.")
    ],
    run: options.RunId = None,
) -> None:
    """Write a run's calls to models into a file that -m replay:FILE answers from, without a model."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.export import Exported, export_cassette
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house

    with open_house(configuration.load()) as house:

        async def go() -> Exported:
            return await export_cassette(house, await find_run(house, run, Path.cwd()), cassette)

        done = asyncio.run(go())
    typer.echo(f"{done.calls} calls in {cassette}. Run with them: redstart fix -m replay:{cassette}")
    if done.begins_late:
        typer.echo(f"this run goes on from {done.begins_late}, whose calls are not in it")


@app.command("fork")
def fork(
    run: options.NamedRunId,
    after: Annotated[options.StepName, typer.Option("--after", help="The last step to keep.")],
    attempt: Annotated[int, typer.Option("--attempt", min=1, help="Of which attempt.")] = 1,
    max_attempts: options.MaxAttempts = None,
) -> None:
    """Make a new run that goes on from a step of an old one."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.app.runs import fork as fork_run
    from redstart.app.wire import open_house
    from redstart.core.run import Step

    with open_house(configuration.load()) as house:

        async def go() -> str:
            run_id = await find_run(house, run, Path.cwd())
            old = await house.adapters.store.load(run_id)
            limits = options.limits_of(old.spec.limits, max_attempts)
            made = await fork_run(house, run_id, attempt, Step(after.value), limits)
            return made.run_id

        typer.echo(f"forked. Go on with: redstart resume {asyncio.run(go())}")


@app.command("watch")
def watch(run: options.RunId = None, json: options.Json = False, verbose: options.Verbose = False) -> None:
    """Follow a run that goes on elsewhere, until it ends or waits for you."""
    import asyncio
    from contextlib import ExitStack

    from redstart.app import settings as configuration
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house
    from redstart.cli.display import display
    from redstart.cli.session import How
    from redstart.cli.watch import watch as follow

    with ExitStack() as stack:
        shown = stack.enter_context(display(json=json, verbose=verbose))
        house = stack.enter_context(open_house(configuration.load()))

        async def go() -> int:
            return await follow(house, await find_run(house, run, Path.cwd()), shown, How(json, verbose))

        raise typer.Exit(asyncio.run(go()))


@app.command("pause")
def pause(run: options.NamedRunId) -> None:
    """Have a run stop after the step at hand, wherever it is driven; `resume` goes on."""
    typer.echo(f"run {_ask(run, 'pause')} stops after the step at hand. Go on with: redstart resume {run}")


@app.command("cancel")
def cancel(run: options.NamedRunId) -> None:
    """End a run after the step at hand. What was done is kept, and `resume` could still go on."""
    typer.echo(f"run {_ask(run, 'cancel')} ends after the step at hand")


def _ask(run: str, word: str) -> str:
    """Tells the run, and the fleet where there is one. The run's id."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.control import ask
    from redstart.app.fleet import tell
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house
    from redstart.ports.store.port import Control

    with open_house(configuration.load()) as house:

        async def go() -> str:
            run_id = await find_run(house, run, Path.cwd())
            await ask(house, run_id, Control(word))
            await tell(house.settings, await house.adapters.store.load(run_id), word)
            return run_id

        return asyncio.run(go())
