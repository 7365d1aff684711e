"""`redstart graph`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from redstart.cli.output import echo


class ModeName(StrEnum):
    """Copies the names of `Mode`: its import is slow, and help must be fast. A test compares them."""

    fix = "fix"
    create = "create"
    improve = "improve"
    audit = "audit"


class DrawingName(StrEnum):
    text = "text"
    mermaid = "mermaid"


def graph(
    mode: Annotated[ModeName, typer.Option("--mode", help="Mode whose steps to draw.")] = ModeName.fix,
    form: Annotated[
        DrawingName | None,
        typer.Option("--format", help="Output format (default: text at a terminal, else mermaid)."),
    ] = None,
) -> None:
    """Draw the steps of a run and the transitions between them."""
    import sys

    from redstart.core.run import Mode
    from redstart.flow.edges import as_mermaid, as_text

    drawing_format = form or (DrawingName.text if sys.stdout.isatty() else DrawingName.mermaid)
    draw = as_text if drawing_format is DrawingName.text else as_mermaid
    echo(draw(Mode(mode.value)))
