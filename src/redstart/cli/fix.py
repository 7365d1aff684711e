"""`redstart fix` and `redstart create`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.app.wire import House
    from redstart.core.run import RunState

NO_LIMIT = 1_000
"""Attempts of `--until-green`: the caps on money, tokens and time come first."""


def fix(
    path: Annotated[Path, typer.Argument(help="The project's folder.")] = Path(),
    model: options.Model = None,
    max_iters: options.MaxIters = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    test_cmd: options.TestCommand = None,
    python: options.Python = None,
    hint: options.Hint = "",
    until_green: options.UntilGreen = False,
    dry_run: options.DryRun = False,
    patch: options.PatchFile = None,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Make the red tests of a repo green. The result is a patch file; the repo is not touched."""
    if not json:
        # What follows takes a second or two to load, and longer to look at a large repo: say at once that it is on.
        typer.echo(f"reading {path}")
    import shlex

    from redstart.app import settings as configuration
    from redstart.app.runs import Asked, begin_fix
    from redstart.cli.session import How, drive_run
    from redstart.core.run import Step

    settings = configuration.load(model, project=path)
    configuration.require_model(settings)
    iterations = NO_LIMIT if until_green else max_iters
    limits = options.limits_of(settings.limits, iterations, max_usd, max_minutes)
    asked = Asked(limits, tuple(shlex.split(test_cmd or settings.tests.command)), hint, settings.protect, python)

    async def begin(house: House) -> RunState:
        return await begin_fix(house, path, asked)

    until = Step(stop_after.value) if stop_after else None
    how = How(json, verbose, unsafe_no_sandbox, engine.value, until, patch, dry_run=dry_run)
    raise typer.Exit(drive_run(settings, how, begin))


def create(
    goal: Annotated[str, typer.Argument(help="What to make, in words.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to make it in; must not exist or be empty.")],
    model: options.Model = None,
    max_iters: options.MaxIters = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Make a small tested Python program from a goal: tests first, seen red, then the code."""
    from redstart.app import settings as configuration
    from redstart.app.runs import Asked, begin_create
    from redstart.cli.session import How, drive_run
    from redstart.core.run import Step

    settings = configuration.load(model)
    configuration.require_model(settings)
    asked = Asked(options.limits_of(settings.limits, max_iters, max_usd, max_minutes))

    async def begin(house: House) -> RunState:
        return await begin_create(house, goal, out, asked)

    until = Step(stop_after.value) if stop_after else None
    how = How(json, verbose, unsafe_no_sandbox, engine.value, until)
    raise typer.Exit(drive_run(settings, how, begin))
