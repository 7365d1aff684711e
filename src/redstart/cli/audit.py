"""`redstart audit`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from redstart.cli import options
from redstart.cli.options import EnvFile, use_env_file
from redstart.cli.output import create_console, echo, echo_json
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
    baseline_path: Path | None = None
    """The baseline file to write."""


def audit(
    path: Annotated[Path, typer.Argument(help="A file or directory.")] = Path(),
    goal: Annotated[str, typer.Option("--goal", help="What to review, in plain English.")] = "",
    since: Annotated[
        str, typer.Option("--since", help="Report only findings on lines changed since this commit, branch or tag.")
    ] = "",
    fail_on: Annotated[
        RiskName | None,
        typer.Option("--fail-on", help="Exit with code 1 if a new finding has this risk or a higher one."),
    ] = None,
    output: Annotated[FormatName, typer.Option("--format", help="Output format.")] = FormatName.text,
    show: Annotated[
        RiskName | None,
        typer.Option(
            "--show", help="Lowest risk to list in text output (default medium); findings below it are only counted."
        ),
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
    """Check a project for security defects and mistakes. Changes nothing and runs none of its code."""
    from redstart.app.audit import BASELINE, AuditRequest, find_baseline
    from redstart.core.errors import ConfigError
    from redstart.core.finding import Risk

    if not path.exists():
        raise ConfigError(f"{path} does not exist", remedy="give the path of a file or directory")
    if baseline is not None and no_baseline:
        raise ConfigError("--baseline and --no-baseline cannot be combined", remedy="use only one of them")
    use_env_file(env_file, folder := path if path.is_dir() else path.parent)
    settings = load_settings(folder, model, can_ask=sys.stdin.isatty() and output is FormatName.text)
    if not no_llm and not settings.models.strong:
        raise ConfigError("no model is configured", remedy="choose one with -m, or run only the tools with --no-llm")
    request = AuditRequest(
        limits=options.resolve_limits(settings.limits, 1, max_usd, max_minutes),
        goal=goal,
        since=since,
        fail_on=Risk(fail_on.value) if fail_on else None,
        review=not no_llm,
        baseline=None if write_baseline or no_baseline else baseline or find_baseline(path),
    )
    if detach:
        raise typer.Exit(_submit_to_fleet(settings, path, request, keeps=write_baseline))
    baseline_path = (baseline or folder / BASELINE) if write_baseline else None
    raise typer.Exit(_run(settings, path, request, Output(output, show, engine.value, baseline_path)))


def _submit_to_fleet(settings: Settings, path: Path, request: AuditRequest, *, keeps: bool) -> int:
    """Submit the audit to the fleet, which reads the same store and shows the findings there."""
    from redstart.app.audit import create_audit_run
    from redstart.cli.session import DriveMode, drive_run
    from redstart.core.errors import ConfigError

    if keeps:
        raise ConfigError("--write-baseline and --detach cannot be combined", remedy="leave out --detach")

    async def start_run(app: AppContext) -> RunState:
        return await create_audit_run(app, path, request)

    return drive_run(settings, DriveMode(detach=True), start_run)


def _run(settings: Settings, path: Path, request: AuditRequest, output: Output) -> int:
    import asyncio
    from dataclasses import replace

    from redstart.app.audit import create_audit_run, load_report, write_baseline
    from redstart.app.exit_codes import exit_code
    from redstart.app.runs import go_on
    from redstart.app.wire import check_models, load_engine, open_app
    from redstart.cli.display import Terminal
    from redstart.cli.session import refresh_periodically
    from redstart.core.frozen import format_count

    if request.review:
        check_models(settings)

    async def go(app: AppContext, ui: Display) -> RunState:
        state = await create_audit_run(app, path, request)
        if any(state.spec.checks.commands.values()):
            app = app.with_sandbox()
        if request.review:
            app = app.with_model()
        app = replace(app, adapters=replace(app.adapters, progress=ui.show_progress))
        async with refresh_periodically(ui):
            return (await go_on(app, state.run_id, load_engine(output.engine))).state

    # Only the report goes to standard output: it may be JSON, or another program may read it.
    screen = Terminal(console=create_console(stderr=True), steps=False)
    with screen as ui, open_app(settings, listen=ui) as app:
        state = asyncio.run(go(app, ui))
        report = load_report(app, state)
    if output.baseline_path is not None:
        write_baseline(output.baseline_path, report.findings)
        echo(f"accepted {format_count(len(report.findings), 'finding')}: wrote {output.baseline_path}", err=True)
        return 0
    _print(report, state, request, output)
    return exit_code(state)


def _print(report: FindingList, state: RunState, request: AuditRequest, output: Output) -> None:
    from importlib.metadata import version

    from redstart.toolkit.checks.formats import as_github, as_json, as_sarif

    if output.form is FormatName.json:
        echo_json(as_json(report))
    elif output.form is FormatName.sarif:
        echo_json(as_sarif(report, version("redstart")))
    elif output.form is FormatName.github:
        echo(as_github(report))
    else:
        _print_text(report, state, request, output.show)


def _print_text(report: FindingList, state: RunState, request: AuditRequest, show: RiskName | None) -> None:
    import os
    import shutil

    from redstart.cli.findings import ReportScreen, report_lines
    from redstart.core.finding import Risk

    # In a pipe each finding is one line, so that grep sees all of it.
    is_wrapped = sys.stdout.isatty() or "COLUMNS" in os.environ
    min_risk = Risk(show.value) if show else Risk.medium
    if show is None and request.fail_on is not None and min_risk.is_at_least(request.fail_on):
        min_risk = request.fail_on
    baseline = request.baseline
    if baseline is not None and baseline.resolve().is_relative_to(Path.cwd()):
        baseline = baseline.resolve().relative_to(Path.cwd())
    screen = ReportScreen(shutil.get_terminal_size().columns if is_wrapped else None, min_risk, baseline)
    for line in report_lines(report, state, screen):
        echo(line)
