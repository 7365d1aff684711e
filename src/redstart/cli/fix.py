"""`redstart fix`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import confirm, echo, prompt
from redstart.cli.repo_commands import load_settings

if TYPE_CHECKING:
    from redstart.app.wire import AppContext
    from redstart.core.run import RunState

NO_LIMIT = 1_000
"""Attempts allowed by `--until-green`: the limits on money, tokens and time are reached first."""


def fix(
    path: Annotated[Path, typer.Argument(help="Directory of the project.")] = Path(),
    tests: Annotated[
        list[str] | None, typer.Argument(help="Failing tests to fix: IDs, files or directories (default: all).")
    ] = None,
    issue: Annotated[
        str | None,
        typer.Option(
            "--issue",
            metavar="FILE|TEXT|URL",
            help="Bug report to fix when no test fails yet; Redstart writes a failing test first.",
        ),
    ] = None,
    keyword: options.Keyword = "",
    model: options.Model = None,
    env_file: EnvFile = None,
    max_attempts: options.MaxAttempts = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    test_cmd: options.TestCommand = None,
    junit: options.Junit = "",
    test_files: options.TestFiles = None,
    scope: options.Scope = None,
    python: options.Python = None,
    hint: options.Hint = "",
    until_green: options.UntilGreen = False,
    verify: options.Verify = None,
    looks: options.MaxToolCalls = None,
    session: options.Session = None,
    fresh: options.Fresh = False,
    candidates: options.Candidates = 1,
    escalate: options.Escalate = False,
    choose: options.ChooseSmallest = False,
    reflect: options.Reflect = None,
    keep_related: options.KeepRelated = False,
    dry_run: options.DryRun = False,
    no_input: options.NoInput = False,
    all_red: options.AllRed = False,
    detach: options.Detach = False,
    patch: options.PatchFile = None,
    apply: options.Apply = False,
    stop_after: options.StopAfter = None,
    json: options.Json = False,
    verbose: options.Verbose = False,
    sandbox: options.SandboxKind = None,
    sandbox_image: options.SandboxImage = None,
    sandbox_cpus: options.SandboxCpus = None,
    sandbox_memory: options.SandboxMemory = None,
    unsafe_no_sandbox: options.Unsafe = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Fix the failing tests of a project. The result is a patch file; your files stay unchanged."""
    path, test_names = _place(path, tests or (), json=json)
    use_env_file(env_file, path)

    import shlex

    from redstart.app import settings as configuration
    from redstart.app.runs import CandidateRequest, RunRequest, create_fix_run
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.run import Step
    from redstart.core.set_aside import SetAsidePolicy

    flags = options.build_sandbox_flags(sandbox, sandbox_image, sandbox_cpus, sandbox_memory)
    flags |= {**options.reflect_flag(reflect), **options.keep_related_flag(keep_related=keep_related)}
    can_ask = options.can_ask_user(silent=no_input or json)
    settings = load_settings(path, model, flags, can_ask=can_ask)
    request = RunRequest(
        options.resolve_limits(
            settings.limits, max_attempts or (NO_LIMIT if until_green else None), max_usd, max_minutes
        ),
        tuple(shlex.split(test_cmd or settings.tests.command)),
        hint,
        settings.protect,
        python,
        test_names,
        keyword,
        tuple(scope or ()),
        junit,
        options.resolve_level(settings.verify, verify),
        looks,
        issue=_load_issue(issue),
        tests=(*settings.tests.files, *(test_files or ())),
        session=session,
        fresh=fresh,
        set_aside=SetAsidePolicy.all_red if all_red else SetAsidePolicy.ask if can_ask else SetAsidePolicy.alone,
        candidates=CandidateRequest(candidates, escalate, choose),
    )
    if not dry_run:
        configuration.require_model(settings)

    async def start_run(app: AppContext) -> RunState:
        questions = (_ask_which, _ask_about_pytest, _ask_for_tests) if can_ask else (None, None, None)
        return await create_fix_run(app, path, request, *questions)

    last_step, may_take = Step(stop_after.value) if stop_after else None, _ask_whether if can_ask else None
    drive_mode = DriveMode(
        json, verbose, unsafe_no_sandbox, engine.value, last_step, patch, dry_run=dry_run, may_take=may_take
    )
    raise typer.Exit(
        drive_run(settings, drive_mode._replace(detach=detach, apply=apply, no_input=not can_ask), start_run)
    )


def _place(path: Path, tests: Sequence[str], *, json: bool) -> tuple[Path, tuple[str, ...]]:
    """Separate the project directory from the tests. If the first argument names tests, no directory is given."""
    test_names = tuple(tests)
    if not path.is_dir() and ("::" in str(path) or path.is_file()):
        path, test_names = Path(), (str(path), *test_names)
    options.require_folder(path)
    if not json:
        # The imports take a second or two, and a large repo takes longer to read: show at once that it has started.
        echo(f"reading the files of {path.resolve().name}")
    return path, test_names


def _load_issue(source: str | None) -> str:
    if source is None:
        return ""
    from redstart.app.issues import read_issue

    return read_issue(source)


def _ask_which(folders: Sequence[str]) -> str:
    echo(f"This repo has {len(folders)} test suites:")
    for number, folder in enumerate(folders, 1):
        echo(f"  {number}  {folder}")
    import click

    number: int = prompt("Which one", click.IntRange(1, len(folders)))
    return folders[number - 1]


def _ask_about_pytest(problem: str) -> bool:
    echo(f"{problem[:1].upper()}{problem[1:]}.")
    return confirm("Run its tests there with Redstart's own pytest? Nothing is installed.")


def _ask_for_tests(problem: str) -> str:
    echo(f"{problem[:1].upper()}{problem[1:]}.")
    return prompt("Glob of the test files, for example checks/*.sh")


def _ask_whether(seconds: float) -> bool:
    return confirm(f"Verifying a fix will take about {seconds / 60:.0f} minutes. Continue?")
