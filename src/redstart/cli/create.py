"""`redstart create`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import prompt

if TYPE_CHECKING:
    from redstart.app.wire import AppContext
    from redstart.core.run import RunState


class LanguageName(StrEnum):
    python = "python"
    node = "node"


class KindName(StrEnum):
    """Copies the names of `ProgramKind`: its import is slow, and help must be fast. A test compares them."""

    web_app = "web_app"
    data_pipeline = "data_pipeline"
    cli_tool = "cli_tool"
    library = "library"


def create(
    goal: Annotated[str | None, typer.Argument(help="What to create, in plain English; - reads it from stdin.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="New or empty directory for the program (default: named after the goal)."),
    ] = None,
    goal_file: Annotated[Path | None, typer.Option("--goal-file", help="Read the goal from this file.")] = None,
    lang: Annotated[LanguageName, typer.Option("--lang", help="Programming language.")] = LanguageName.python,
    kind: Annotated[KindName | None, typer.Option("--kind", help="Kind of program.")] = None,
    spec_tests: Annotated[
        Path | None, typer.Option("--spec-tests", help="Use the tests in this file or directory; write none.")
    ] = None,
    model: options.Model = None,
    env_file: EnvFile = None,
    max_attempts: options.MaxAttempts = None,
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
    """Create a tested program from a goal: first the tests, which must fail, then the code that makes them pass."""
    from redstart.app import settings as configuration
    from redstart.app.create import NewProgram, begin_create
    from redstart.app.runs import RunRequest
    from redstart.app.skeleton import folder_name
    from redstart.cli.approval import settle_packages
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.run import Step
    from redstart.core.wishes import ProgramKind

    use_env_file(env_file, Path())
    settings = configuration.load(model, flags=options.reflect_flag(reflect))
    configuration.require_model(settings)
    somebody_there = sys.stdin.isatty() and not (no_input or json)
    words = goal_of(goal, goal_file, somebody_there=somebody_there)
    limits = options.limits_of(settings.limits, max_attempts, max_usd, max_minutes)
    asked = RunRequest(limits, verify=options.level_of(settings.verify, verify), looks=looks, approve=approve)
    wanted = NewProgram(lang.value, ProgramKind(kind.value) if kind else None, spec_tests)
    run_ids: list[str] = []

    async def begin(house: AppContext) -> RunState:
        state = await begin_create(house, words, out or Path(folder_name(words)), asked, wanted)
        run_ids.append(state.run_id)
        return state

    until = Step(stop_after.value) if stop_after else None
    how = DriveMode(json, verbose, unsafe_no_sandbox, engine.value, until, detach=detach)
    code = drive_run(settings, how, begin)
    raise typer.Exit(settle_packages(settings, how, run_ids[0], code, somebody_there=somebody_there))


def goal_of(given: str | None, file: Path | None, *, somebody_there: bool) -> str:
    """Read the goal from the command line, a file, standard input or a prompt. Raises `ConfigError`."""
    from redstart.core.errors import ConfigError

    if given is not None and file is not None:
        raise ConfigError("the goal is given twice", remedy="use either the argument or --goal-file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {file}", remedy="give --goal-file a UTF-8 text file") from error
    if given == "-":
        return sys.stdin.read().strip()
    if given is not None:
        return given
    if not somebody_there:
        raise ConfigError("no goal is given", remedy='describe the program: redstart create "a CSV sorter"')
    answer: str = prompt("What do you want to create?")
    return answer.strip()
