"""`redstart graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from redstart.cli.output import echo


class ModeName(StrEnum):
    """The modes again: importing the real ones takes long, and help must not. A test compares them."""

    fix = "fix"
    create = "create"
    improve = "improve"
    audit = "audit"


class DrawingName(StrEnum):
    text = "text"
    mermaid = "mermaid"


def graph(
    mode: Annotated[ModeName, typer.Option("--mode", help="Whose steps to draw.")] = ModeName.fix,
    form: Annotated[
        DrawingName | None,
        typer.Option("--format", help="Output format (default: text at a terminal, else mermaid)."),
    ] = None,
) -> None:
    """Draw the steps of a run and where each can lead.

    Example: redstart graph --mode create --format mermaid > create.mmd
    """
    import sys

    from redstart.core.run import Mode
    from redstart.flow.edges import as_mermaid, as_text

    chosen = form or (DrawingName.text if sys.stdout.isatty() else DrawingName.mermaid)
    draw = as_text if chosen is DrawingName.text else as_mermaid
    echo(draw(Mode(mode.value)))
