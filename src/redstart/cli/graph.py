"""`redstart graph`."""

from __future__ import annotations

import typer


def graph() -> None:
    """Print the steps and where each may lead, as a Mermaid drawing."""
    from redstart.engines.langgraph import mermaid

    typer.echo(mermaid())
