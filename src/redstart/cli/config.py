"""`redstart config`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="What is set, where, and what can be set.", no_args_is_help=True, rich_markup_mode=None)

VERSION = 1


@app.command("show")
def show(
    path: Annotated[Path, typer.Argument(help="The project's folder.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show every setting in force and where its value comes from. No key is ever shown."""
    import json as encoder

    from redstart.app.settings import public_values, resolve

    settings, origins = resolve(project=path.resolve())
    values = public_values(settings)
    if json:
        rows = [{"name": name, "value": value, "origin": origins[name]} for name, value in values.items()]
        typer.echo(encoder.dumps({"v": VERSION, "settings": rows}, indent=2))
        return
    # ASCII: a project's file may hold what a terminal would obey.
    shown = {name: encoder.dumps(value) for name, value in values.items()}
    names, widest = max(map(len, shown)), min(max(map(len, shown.values())), 40)
    for name, value in shown.items():
        typer.echo(f"{name:<{names}}  {value:<{widest}}  {origins[name]}")


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of the settings, for editors."""
    import json as encoder

    from redstart.app.settings import Settings

    typer.echo(encoder.dumps(Settings.model_json_schema(), indent=2))
