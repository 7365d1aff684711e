"""`redstart audit`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from redstart.app.audit import AuditAsked
    from redstart.app.settings import Settings
    from redstart.app.wire import House
    from redstart.core.finding import Finding
    from redstart.core.run import RunState


class RiskName(StrEnum):
    """The risks again: importing the real ones takes long, and help must not. A test compares them."""

    low = "low"
    medium = "medium"
    high = "high"


class FormatName(StrEnum):
    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


def audit(
    path: Annotated[Path, typer.Argument(help="A file or a folder.")] = Path(),
    goal: Annotated[str, typer.Option("--goal", help="What to look at, in words.")] = "",
    since: Annotated[str, typer.Option("--since", help="Only what changed since this commit, branch or tag.")] = "",
    fail_on: Annotated[
        RiskName | None, typer.Option("--fail-on", help="Exit with 1 where a new finding has this risk or more.")
    ] = None,
    output: Annotated[FormatName, typer.Option("--format", help="How findings are printed.")] = FormatName.text,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Tools alone: no model is asked.")] = False,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="File of findings that are accepted already.")
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Accept what is found: write it to the baseline file.")
    ] = False,
    model: options.Model = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    detach: options.Detach = False,
    engine: options.Engine = options.EngineName.inline,
) -> None:
    """Look a project over for security defects and mistakes. Nothing of it is changed or run."""
    from redstart.app import settings as configuration
    from redstart.app.audit import BASELINE, AuditAsked
    from redstart.core.errors import ConfigError
    from redstart.core.finding import Risk

    folder = path if path.is_dir() else path.parent
    settings = configuration.load(model, project=folder)
    if not no_llm and not settings.models.strong:
        raise ConfigError("no model is configured", remedy="name one with -m, or run the tools alone: --no-llm")
    asked = AuditAsked(
        limits=options.limits_of(settings.limits, 1, max_usd, max_minutes),
        goal=goal,
        since=since,
        fail_on=Risk(fail_on.value) if fail_on else None,
        review=not no_llm,
        baseline=None if write_baseline else baseline,
    )
    if detach:
        raise typer.Exit(_hand_over(settings, path, asked, keeps=write_baseline))
    keep = (baseline or folder / BASELINE) if write_baseline else None
    raise typer.Exit(_run(settings, path, asked, output, engine.value, keep))


def _hand_over(settings: Settings, path: Path, asked: AuditAsked, *, keeps: bool) -> int:
    """To the fleet, which reads the same store: what it finds is shown there."""
    from redstart.app.audit import begin_audit
    from redstart.cli.session import How, drive_run
    from redstart.core.errors import ConfigError

    if keeps:
        raise ConfigError("--write-baseline and --detach cannot both be meant")

    async def begin(house: House) -> RunState:
        return await begin_audit(house, path, asked)

    return drive_run(settings, How(detach=True), begin)


def _run(settings: Settings, path: Path, asked: AuditAsked, output: FormatName, engine: str, keep: Path | None) -> int:
    import asyncio

    from redstart.app.audit import begin_audit, found_by, write_baseline
    from redstart.app.exits import exit_code
    from redstart.app.runs import go_on
    from redstart.app.wire import engine_called, open_house

    async def go(house: House) -> RunState:
        state = await begin_audit(house, path, asked)
        if any(state.spec.checks.commands.values()):
            house = house.with_sandbox()
        if asked.review:
            house = house.with_model()
        return (await go_on(house, state.run_id, engine_called(engine))).state

    with open_house(settings) as house:
        state = asyncio.run(go(house))
        found = found_by(house, state)
    if keep is not None:
        write_baseline(keep, found)
        typer.echo(f"{len(found)} findings are accepted in {keep}", err=True)
        return 0
    _print(found, state, output)
    return exit_code(state)


def _print(found: tuple[Finding, ...], state: RunState, output: FormatName) -> None:
    from importlib.metadata import version

    from redstart.toolkit.checks.formats import as_github, as_json, as_sarif

    if output is FormatName.json:
        typer.echo(as_json(found))
    elif output is FormatName.sarif:
        typer.echo(as_sarif(found, version("redstart")))
    elif output is FormatName.github:
        typer.echo(as_github(found))
    else:
        for one in found:
            typer.echo(in_words(one))
        typer.echo(("\n" if found else "") + ending(state))


def in_words(one: Finding) -> str:
    """A finding in one line, with who else says so."""
    used = f" (used on line {one.reaches})" if one.reaches else ""
    also = f", {', '.join(one.also)}" if one.also else ""
    return f"{one.path}:{one.line}  {one.risk.value}  {one.message}{used}  [{one.tool} {one.rule}{also}]"


def ending(state: RunState) -> str:
    """How it ended: what was found, and what was paid where a model was asked."""
    dropped = state.now.audit.dropped if state.now.audit else 0
    parts = (
        state.reason,
        f"{dropped} claims of the model did not hold" if dropped else "",
        f"{state.spend.calls} model calls, ${state.spend.usd:.3f}" if state.spend.calls else "",
        f"run {state.run_id}",
    )
    return " · ".join(part for part in parts if part)
