"""`redstart audit`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import echo, echo_json, new_console
from redstart.cli.repo_commands import load_settings

if TYPE_CHECKING:
    from redstart.app.audit import AuditRequest
    from redstart.app.settings import Settings
    from redstart.app.wire import AppContext
    from redstart.cli.display import Display
    from redstart.core.finding import FindingList
    from redstart.core.run import RunState


class RiskName(StrEnum):
    """Copies the names of `Risk`: its import is slow, and help must be fast. A test compares them."""

    low = "low"
    medium = "medium"
    high = "high"


class FormatName(StrEnum):
    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


class Output(NamedTuple):
    """How to print the report, or the baseline file to write instead."""

    form: FormatName
    show: RiskName | None
    engine: str
    written: Path | None = None
    """The baseline file to write."""


def audit(
    path: Annotated[Path, typer.Argument(help="A file or directory.")] = Path(),
    goal: Annotated[str, typer.Option("--goal", help="What to review, in plain English.")] = "",
    since: Annotated[
        str, typer.Option("--since", help="Report only lines changed since this commit, branch or tag.")
    ] = "",
    fail_on: Annotated[
        RiskName | None, typer.Option("--fail-on", help="Exit with 1 if a new finding has this risk or a higher one.")
    ] = None,
    output: Annotated[FormatName, typer.Option("--format", help="Output format.")] = FormatName.text,
    show: Annotated[
        RiskName | None,
        typer.Option("--show", help="Lowest risk to list as text (default medium); lower ones are only counted."),
    ] = None,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Run only the tools, without a model.")] = False,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="File of accepted findings (default redstart-baseline.json, if present)."),
    ] = None,
    no_baseline: Annotated[bool, typer.Option("--no-baseline", help="Do not read a baseline file.")] = False,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Accept all current findings: write them to the baseline file.")
    ] = False,
    model: options.Model = None,
    env_file: EnvFile = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    detach: options.Detach = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Check a project for security defects and mistakes. Changes nothing and runs none of its code.

    Example: redstart audit --since main --fail-on high
    """
    from redstart.app.audit import BASELINE, AuditRequest, find_baseline
    from redstart.core.errors import ConfigError
    from redstart.core.finding import Risk

    if not path.exists():
        raise ConfigError(f"{path} does not exist", remedy="give the path of a file or directory")
    if baseline is not None and no_baseline:
        raise ConfigError("--baseline and --no-baseline cannot be combined", remedy="use only one of them")
    use_env_file(env_file, folder := path if path.is_dir() else path.parent)
    settings = load_settings(folder, model, somebody_there=sys.stdin.isatty() and output is FormatName.text)
    if not no_llm and not settings.models.strong:
        raise ConfigError("no model is configured", remedy="choose one with -m, or run only the tools with --no-llm")
    asked = AuditRequest(
        limits=options.limits_of(settings.limits, 1, max_usd, max_minutes),
        goal=goal,
        since=since,
        fail_on=Risk(fail_on.value) if fail_on else None,
        review=not no_llm,
        baseline=None if write_baseline or no_baseline else baseline or find_baseline(path),
    )
    if detach:
        raise typer.Exit(_hand_over(settings, path, asked, keeps=write_baseline))
    written = (baseline or folder / BASELINE) if write_baseline else None
    raise typer.Exit(_run(settings, path, asked, Output(output, show, engine.value, written)))


def _hand_over(settings: Settings, path: Path, asked: AuditRequest, *, keeps: bool) -> int:
    """Submit the audit to the fleet, which reads the same store and shows the findings there."""
    from redstart.app.audit import begin_audit
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.errors import ConfigError

    if keeps:
        raise ConfigError("--write-baseline and --detach cannot be combined", remedy="leave out --detach")

    async def begin(house: AppContext) -> RunState:
        return await begin_audit(house, path, asked)

    return drive_run(settings, DriveMode(detach=True), begin)


def _run(settings: Settings, path: Path, asked: AuditRequest, output: Output) -> int:
    import asyncio
    from dataclasses import replace

    from redstart.app.audit import begin_audit, load_report, write_baseline
    from redstart.app.exits import exit_code
    from redstart.app.runs import go_on
    from redstart.app.wire import check_models, engine_called, open_house
    from redstart.cli.display import Terminal
    from redstart.cli.session import ticking
    from redstart.core.noun import many

    if asked.review:
        check_models(settings)

    async def go(house: AppContext, shown: Display) -> RunState:
        state = await begin_audit(house, path, asked)
        if any(state.spec.checks.commands.values()):
            house = house.with_sandbox()
        if asked.review:
            house = house.with_model()
        house = replace(house, adapters=replace(house.adapters, progress=shown.progress))
        async with ticking(shown):
            return (await go_on(house, state.run_id, engine_called(output.engine))).state

    # Only the report goes to standard output: it may be JSON, or another program may read it.
    screen = Terminal(console=new_console(stderr=True), steps=False)
    with screen as shown, open_house(settings, listen=shown) as house:
        state = asyncio.run(go(house, shown))
        report = load_report(house, state)
    if output.written is not None:
        write_baseline(output.written, report.findings)
        echo(f"accepted {many(len(report.findings), 'finding')}: wrote {output.written}", err=True)
        return 0
    _print(report, state, asked, output)
    return exit_code(state)


def _print(report: FindingList, state: RunState, asked: AuditRequest, output: Output) -> None:
    from importlib.metadata import version

    from redstart.toolkit.checks.formats import as_github, as_json, as_sarif

    if output.form is FormatName.json:
        echo_json(as_json(report))
    elif output.form is FormatName.sarif:
        echo_json(as_sarif(report, version("redstart")))
    elif output.form is FormatName.github:
        echo(as_github(report))
    else:
        _print_text(report, state, asked, output.show)


def _print_text(report: FindingList, state: RunState, asked: AuditRequest, show: RiskName | None) -> None:
    import os
    import shutil

    from redstart.cli.findings import ReportScreen, report_lines
    from redstart.core.finding import Risk

    # In a pipe each finding is one line, so that grep sees all of it.
    is_wrapped = sys.stdout.isatty() or "COLUMNS" in os.environ
    least = Risk(show.value) if show else Risk.medium
    if show is None and asked.fail_on is not None and least.reaches(asked.fail_on):
        least = asked.fail_on
    baseline = asked.baseline
    if baseline is not None and baseline.resolve().is_relative_to(Path.cwd()):
        baseline = baseline.resolve().relative_to(Path.cwd())
    screen = ReportScreen(shutil.get_terminal_size().columns if is_wrapped else None, least, baseline)
    for line in report_lines(report, state, screen):
        echo(line)
