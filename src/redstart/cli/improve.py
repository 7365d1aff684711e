"""`redstart improve`."""

from __future__ import annotations

import shlex
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import prompt
from redstart.cli.repo_commands import load_settings

if TYPE_CHECKING:
    from redstart.app.improve import ImproveLimits

ASK = "Limit for all cycles together: an amount ($5), a time (90 min), or none"


class BetterName(StrEnum):
    """Copies the names of `MetricDirection`: its import is slow, and help must be fast. A test compares them."""

    smaller = "smaller"
    larger = "larger"


def improve(
    path: Annotated[Path, typer.Argument(help="Directory of the program; an empty one needs --goal.")] = Path(),
    goal: Annotated[str, typer.Option("--goal", help="Purpose of the program.")] = "",
    metric: Annotated[str, typer.Option("--metric", help="Command whose last printed number must not get worse.")] = "",
    better: Annotated[BetterName, typer.Option("--better", help="Which values are better.")] = BetterName.smaller,
    max_cycles: Annotated[int, typer.Option("--max-cycles", min=0, help="Stop after N cycles; 0 for no limit.")] = 0,
    max_attempts: Annotated[int, typer.Option("--max-attempts", min=0, hidden=True)] = 0,
    pause: Annotated[float, typer.Option("--pause", min=0, help="Seconds between cycles.")] = 5.0,
    max_usd: Annotated[float | None, typer.Option("--max-usd", min=0, help="Money limit in dollars.")] = None,
    max_minutes: Annotated[float | None, typer.Option("--max-minutes", min=0, help="Time limit in minutes.")] = None,
    no_limit: Annotated[bool, typer.Option("--no-limit", help="Run without a money or time limit.")] = False,
    model: options.Model = None,
    env_file: EnvFile = None,
    test_cmd: options.TestCommand = None,
    junit: options.Junit = "",
    test_files: options.TestFiles = None,
    scope: options.Scope = None,
    python: options.Python = None,
    hint: options.Hint = "",
    verify: options.Verify = None,
    looks: options.MaxToolCalls = None,
    reflect: options.Reflect = None,
    keep_related: options.KeepRelated = False,
    approve: options.Approve = False,
    no_input: options.NoInput = False,
    detach: options.Detach = False,
    patch: options.PatchFile = None,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Improve a program in cycles. A change is kept only if a new test fails before it and passes after it.

    Your files stay unchanged; `redstart apply` applies the kept changes. Ctrl-C stops, `redstart resume` continues.
    """
    from redstart.app.improve import ImproveRequest, build_run_limits, create_improve_run
    from redstart.app.runs import RunRequest
    from redstart.app.settings import require_model
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.run import Step
    from redstart.core.run_preferences import MetricDirection

    use_env_file(env_file, options.require_folder(path))
    silent = no_input or json
    can_ask = options.can_ask_user(silent=silent)
    flags = {**options.reflect_flag(reflect), **options.keep_related_flag(keep_related=keep_related)}
    settings = load_settings(path, model, flags, can_ask=can_ask)
    require_model(settings)
    cap = _cap(max_usd, max_minutes, no_cap=no_limit, silent=silent)
    command, level = (
        tuple(shlex.split(test_cmd or settings.tests.command)),
        options.resolve_level(settings.verify, verify),
    )
    run_request = RunRequest(
        build_run_limits(settings, cap), command, hint, settings.protect, python, scope=tuple(scope or ()), junit=junit
    )
    files = (*settings.tests.files, *(test_files or ()))
    run_request = run_request._replace(verify=level, max_tool_calls=looks, approve=approve, tests=files)
    improve_request = ImproveRequest(
        run_request, goal, max_cycles or max_attempts, pause, tuple(shlex.split(metric)), MetricDirection(better.value)
    )
    last_step = Step(stop_after.value) if stop_after else None
    drive_mode = DriveMode(json, verbose, unsafe_no_sandbox, engine.value, last_step, patch, detach=detach)
    raise typer.Exit(drive_run(settings, drive_mode, partial(create_improve_run, path=path, request=improve_request)))


def _cap(usd: float | None, minutes: float | None, *, no_cap: bool, silent: bool) -> ImproveLimits:
    """Return the limits of all cycles together, from the flags or else from the user's answer.

    Raises `ConfigError` for flags that contradict each other, and if nobody can be asked.
    """
    from redstart.app.improve import ImproveLimits, create_missing_limit_error, read_cap
    from redstart.core.errors import ConfigError

    if no_cap and (usd is not None or minutes is not None):
        raise ConfigError("--no-limit contradicts --max-usd and --max-minutes", remedy="use only one of them")
    if no_cap or usd is not None or minutes is not None:
        return ImproveLimits(usd, minutes)
    if not options.can_ask_user(silent=silent):
        raise create_missing_limit_error()
    return read_cap(prompt(ASK))
