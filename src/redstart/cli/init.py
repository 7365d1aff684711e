"""`redstart init`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def init(
    path: Annotated[Path, typer.Argument(help="The project's folder.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write it without asking.")] = False,
    no_input: Annotated[bool, typer.Option("--no-input", help="Never ask; without --yes nothing is written.")] = False,
) -> None:
    """Look at a project and propose a redstart.toml for it. An existing one is never overwritten."""
    from redstart.app.init import propose, write

    proposal = propose(path)
    found = f"tests found: {proposal.runner}" if proposal.runner else "no tests found"
    typer.echo(f"{found}\n{proposal.path} would be:\n\n{proposal.text}")
    if not yes and (no_input or not sys.stdin.isatty()):
        typer.echo("nothing was written; to write it: redstart init --yes")
        return
    if yes or typer.confirm("Write it?", default=True):
        write(proposal)
        typer.echo(f"written: {proposal.path}")
    else:
        typer.echo("nothing was written")
