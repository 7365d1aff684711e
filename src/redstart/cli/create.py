"""`redstart create`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.env_file import EnvFile, use_env_file

if TYPE_CHECKING:
    from redstart.app.wire import House
    from redstart.core.run import RunState


class LanguageName(StrEnum):
    python = "python"
    node = "node"


class KindName(StrEnum):
    """The kinds again: importing the real ones takes long, and help must not. A test compares them."""

    web_app = "web_app"
    data_pipeline = "data_pipeline"
    cli_tool = "cli_tool"
    library = "library"


def create(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to make it in; must not exist or be empty.")],
    goal: Annotated[str | None, typer.Argument(help="What to make, in words; - reads it from standard input.")] = None,
    goal_file: Annotated[Path | None, typer.Option("--goal-file", help="A file that says what to make.")] = None,
    lang: Annotated[LanguageName, typer.Option("--lang", help="What it is written in.")] = LanguageName.python,
    kind: Annotated[KindName | None, typer.Option("--kind", help="What sort of program it is.")] = None,
    spec_tests: Annotated[
        Path | None, typer.Option("--spec-tests", help="Your own tests, a file or a folder: no others are written.")
    ] = None,
    model: options.Model = None,
    env_file: EnvFile = None,
    max_iters: options.MaxIters = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    verify: options.Verify = None,
    looks: options.Looks = None,
    reflect: options.Reflect = None,
    approve: options.Approve = False,
    no_input: options.NoInput = False,
    detach: options.Detach = False,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Make a tested program from a goal: tests first, seen red, then the code."""
    from redstart.app import settings as configuration
    from redstart.app.create import NewProgram, begin_create
    from redstart.app.runs import Asked
    from redstart.cli.session import How, drive_run
    from redstart.core.run import Step
    from redstart.core.wishes import Kind

    use_env_file(env_file, Path())
    settings = configuration.load(model, flags=options.reflect_flag(reflect))
    configuration.require_model(settings)
    words = goal_of(goal, goal_file, somebody_there=sys.stdin.isatty() and not (no_input or json))
    limits = options.limits_of(settings.limits, max_iters, max_usd, max_minutes)
    asked = Asked(limits, verify=options.level_of(settings.verify, verify), looks=looks, approve=approve)
    wanted = NewProgram(lang is LanguageName.node, Kind(kind.value) if kind else None, spec_tests)

    async def begin(house: House) -> RunState:
        return await begin_create(house, words, out, asked, wanted)

    until = Step(stop_after.value) if stop_after else None
    how = How(json, verbose, unsafe_no_sandbox, engine.value, until, detach=detach)
    raise typer.Exit(drive_run(settings, how, begin))


def goal_of(given: str | None, file: Path | None, *, somebody_there: bool) -> str:
    """The goal as it was said: in the command, in a file, on standard input, or now. Raises `ConfigError`."""
    from redstart.core.errors import ConfigError

    if given is not None and file is not None:
        raise ConfigError("the goal is said twice", remedy="say it in the command or with --goal-file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} cannot be read", remedy="--goal-file takes a text file") from error
    if given == "-":
        return sys.stdin.read().strip()
    if given is not None:
        return given
    if not somebody_there:
        raise ConfigError("there is no goal", remedy='say what to make: redstart create "a csv sorter" -o DIR')
    said: str = typer.prompt("What shall be made")
    return said.strip()
