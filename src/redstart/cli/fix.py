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
    looks: options.Looks = None,
    reflect: options.Reflect = None,
    dry_run: options.DryRun = False,
    no_input: options.NoInput = False,
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
    path, named = _place(path, tests or (), json=json)
    use_env_file(env_file, path)

    import shlex

    from redstart.app import settings as configuration
    from redstart.app.runs import RunRequest, begin_fix
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.run import Step

    flags = options.sandbox_flags(sandbox, sandbox_image, sandbox_cpus, sandbox_memory)
    there = options.is_somebody_there(silent=no_input or json)
    settings = load_settings(path, model, {**flags, **options.reflect_flag(reflect)}, somebody_there=there)
    asked = RunRequest(
        options.limits_of(settings.limits, max_attempts or (NO_LIMIT if until_green else None), max_usd, max_minutes),
        tuple(shlex.split(test_cmd or settings.tests.command)),
        hint,
        settings.protect,
        python,
        named,
        keyword,
        tuple(scope or ()),
        junit,
        options.level_of(settings.verify, verify),
        looks,
        issue=_issue(issue),
        tests=(*settings.tests.files, *(test_files or ())),
    )
    if not dry_run:
        configuration.require_model(settings)

    async def begin(house: AppContext) -> RunState:
        questions = (_ask_which, _ask_about_pytest, _ask_for_tests) if there else (None, None, None)
        return await begin_fix(house, path, asked, *questions)

    until, may_take = Step(stop_after.value) if stop_after else None, _ask_whether if there else None
    how = DriveMode(json, verbose, unsafe_no_sandbox, engine.value, until, patch, dry_run=dry_run, may_take=may_take)
    raise typer.Exit(drive_run(settings, how._replace(detach=detach, apply=apply, no_input=not there), begin))


def _place(path: Path, tests: Sequence[str], *, json: bool) -> tuple[Path, tuple[str, ...]]:
    """Separate the project directory from the tests. If the first argument names tests, no directory is given."""
    named = tuple(tests)
    if not path.is_dir() and ("::" in str(path) or path.is_file()):
        path, named = Path(), (str(path), *named)
    options.require_folder(path)
    if not json:
        # The imports take a second or two, and a large repo takes longer to read: show at once that it has started.
        echo(f"reading {path.resolve().name}")
    return path, named


def _issue(given: str | None) -> str:
    if given is None:
        return ""
    from redstart.app.issues import read_issue

    return read_issue(given)


def _ask_which(folders: Sequence[str]) -> str:
    echo(f"This repo has {len(folders)} test suites:")
    for number, folder in enumerate(folders, 1):
        echo(f"  {number}  {folder}")
    import click

    number: int = prompt("Which one", click.IntRange(1, len(folders)))
    return folders[number - 1]


def _ask_about_pytest(what: str) -> bool:
    echo(f"{what[:1].upper()}{what[1:]}.")
    return confirm("Run its tests there with Redstart's own pytest? Nothing is installed.")


def _ask_for_tests(what: str) -> str:
    echo(f"{what[:1].upper()}{what[1:]}.")
    return prompt("Glob of the test files, for example checks/*.sh")


def _ask_whether(seconds: float) -> bool:
    return confirm(f"Verifying a fix will take about {seconds / 60:.0f} minutes. Continue?")
