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
        Path | None,
        typer.Option("--spec-tests", help="Use the tests in this file or directory instead of writing new ones."),
    ] = None,
    model: options.Model = None,
    env_file: EnvFile = None,
    max_attempts: options.MaxAttempts = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    verify: options.Verify = None,
    looks: options.MaxToolCalls = None,
    session: options.Session = None,
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
    from redstart.app.create import NewProgram, create_program_run
    from redstart.app.project_files import make_folder_name
    from redstart.app.runs import RunRequest
    from redstart.cli.approval import settle_packages
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.run import Step
    from redstart.core.run_preferences import ProgramKind

    use_env_file(env_file, Path())
    settings = configuration.load(model, flags=options.reflect_flag(reflect))
    configuration.require_model(settings)
    can_ask = sys.stdin.isatty() and not (no_input or json)
    goal_text = read_goal(goal, goal_file, can_ask=can_ask)
    limits = options.resolve_limits(settings.limits, max_attempts, max_usd, max_minutes)
    level = options.resolve_level(settings.verify, verify)
    request = RunRequest(limits, verify=level, max_tool_calls=looks, approve=approve, session=session)
    program_options = NewProgram(lang.value, ProgramKind(kind.value) if kind else None, spec_tests)
    run_ids: list[str] = []

    async def start_run(app: AppContext) -> RunState:
        state = await create_program_run(
            app, goal_text, out or Path(make_folder_name(goal_text)), request, program_options
        )
        run_ids.append(state.run_id)
        return state

    last_step = Step(stop_after.value) if stop_after else None
    drive_mode = DriveMode(json, verbose, unsafe_no_sandbox, engine.value, last_step, detach=detach)
    code = drive_run(settings, drive_mode, start_run)
    raise typer.Exit(settle_packages(settings, drive_mode, run_ids[0], code, can_ask=can_ask))


def read_goal(goal: str | None, file: Path | None, *, can_ask: bool) -> str:
    """Read the goal from the command line, a file, standard input or a prompt. Raises `ConfigError`."""
    from redstart.core.errors import ConfigError

    if goal is not None and file is not None:
        raise ConfigError("the goal was given twice", remedy="use either the argument or --goal-file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {file}", remedy="give --goal-file a UTF-8 text file") from error
    if goal == "-":
        return sys.stdin.read().strip()
    if goal is not None:
        return goal
    if not can_ask:
        raise ConfigError("no goal is given", remedy='describe the program: redstart create "a CSV sorter"')
    answer: str = prompt("What do you want to create?")
    return answer.strip()
