"""`redstart doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

UNHEALTHY = 3


def doctor(
    online: Annotated[bool, typer.Option("--online", help="Ask each configured model one small question.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Look at what redstart needs on this machine, and say what to do about what is missing. Changes nothing."""
    from redstart.app.doctor import examine

    found = examine(online=online, project=Path.cwd())
    if json:
        typer.echo(found.model_dump_json(indent=2))
        raise typer.Exit(0 if found.ok else UNHEALTHY)
    group = ""
    for check in found.checks:
        if check.group != group:
            group = check.group
            typer.echo(group)
        typer.echo(f"  {check.health.value:<5} {check.name:<9} {check.detail}")
        for line in check.remedy.splitlines():
            typer.echo(f"        {line}")
    typer.echo("all is well" if found.ok else "something is missing: see above")
    raise typer.Exit(0 if found.ok else UNHEALTHY)
