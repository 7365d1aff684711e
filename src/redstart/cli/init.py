"""`redstart init`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from redstart.cli.output import confirm, echo


def init(
    path: Annotated[Path, typer.Argument(help="The directory of the project.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write the file without asking.")] = False,
    no_input: Annotated[bool, typer.Option("--no-input", help="Ask nothing; write nothing without --yes.")] = False,
) -> None:
    """Propose a redstart.toml for a project and write it. An existing file is never overwritten."""
    from redstart.app.init import propose, write

    proposal = propose(path)
    runner = f"test runner: {proposal.runner}" if proposal.runner else "no tests found"
    echo(f"{runner}\nproposed {proposal.path}:\n\n{proposal.text}")
    if not yes and (no_input or not sys.stdin.isatty()):
        echo("nothing written; to write it: redstart init --yes")
        return
    if yes or confirm("Write this file?", default=True):
        write(proposal)
        echo(f"wrote {proposal.path}")
    else:
        echo("nothing written")
