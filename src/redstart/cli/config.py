"""`redstart config` and `redstart init`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from redstart.cli.output import confirm, echo, echo_json

app = typer.Typer(help="Show and change settings.", no_args_is_help=True, rich_markup_mode=None)

VERSION = 1

Key = Annotated[str, typer.Argument(metavar="KEY", help="Dotted name of a setting, such as models.strong.")]


@app.command("show")
def show(
    path: Annotated[Path, typer.Argument(help="The directory of the project.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show every effective setting and where its value comes from. API keys are never shown."""
    import json as encoder

    from redstart.app.settings import list_public_values, resolve

    settings, origins = resolve(project=path.resolve())
    values = list_public_values(settings)
    if json:
        rows = [{"name": name, "value": value, "origin": origins[name]} for name, value in values.items()]
        echo_json(encoder.dumps({"v": VERSION, "settings": rows}, indent=2))
        return
    # ASCII only: a project's file may contain terminal control sequences.
    formatted = {name: encoder.dumps(value) for name, value in values.items()}
    names, widest = max(map(len, formatted)), min(max(map(len, formatted.values())), 40)
    for name, value in formatted.items():
        echo(f"{name:<{names}}  {value:<{widest}}  {origins[name]}")


@app.command("get")
def get(key: Key) -> None:
    """Print the effective value of one setting in this directory."""
    import json as encoder

    from redstart.app.settings import list_public_values, resolve
    from redstart.app.settings.user_file import refuse_unknown

    refuse_unknown(key)
    value = list_public_values(resolve(project=Path.cwd()).settings)[key]
    echo(value if isinstance(value, str) and value.isprintable() else encoder.dumps(value))


@app.command("set")
def set_(
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help='The value; write a list as ["one", "two"].')],
) -> None:
    """Change one setting in your settings file. Comments and all other lines stay unchanged."""
    import os

    from redstart.app.settings import list_public_values, resolve
    from redstart.app.settings.user_file import set_value

    change = set_value(key, value, os.environ)
    settings, origins = resolve(project=Path.cwd())
    echo(f"set {key} in {change.path}")
    if origins[key] != str(change.path):
        echo(f"note: {origins[key]} overrides it: {key} = {list_public_values(settings)[key]!r} is in effect", err=True)


@app.command("path")
def path() -> None:
    """Print the path of your settings file, whether or not it exists."""
    import os

    from redstart.app.settings.user_file import get_file_path

    echo(str(get_file_path(os.environ)))


@app.command("edit")
def edit() -> None:
    """Open your settings file in $VISUAL or $EDITOR, then check it."""
    import os
    import subprocess

    from redstart.app.settings.user_file import check_file, find_editor_command, prepare_file
    from redstart.core.errors import ConfigError

    editor = find_editor_command(os.environ)
    file = prepare_file(os.environ)
    try:
        code = subprocess.run([*editor, str(file)], check=False).returncode
    except OSError as error:
        raise ConfigError(
            f"{editor[0]} cannot be started: {error.strerror}", remedy="set EDITOR to another program"
        ) from error
    if code:
        raise ConfigError(f"{editor[0]} exited with code {code}", remedy=f"check {file}")
    check_file(os.environ)
    echo(f"{file} is valid")


@app.command("schema")
def schema() -> None:
    """Print the JSON Schema of the settings, for editors."""
    import json as encoder

    from redstart.app.settings import Settings

    echo_json(encoder.dumps(Settings.model_json_schema(), indent=2))


def init(
    path: Annotated[Path, typer.Argument(help="The directory of the project.")] = Path(),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write the file without asking.")] = False,
    no_input: Annotated[bool, typer.Option("--no-input", help="Never ask; write nothing without --yes.")] = False,
) -> None:
    """Propose a redstart.toml for a project and write it. An existing file is never overwritten."""
    from redstart.app.init import propose, write

    proposal = propose(path)
    runner = f"test runner: {proposal.runner}" if proposal.runner else "no tests found"
    echo(f"{runner}\nproposed {proposal.path}:\n\n{proposal.text}")
    if not yes and (no_input or not sys.stdin.isatty()):
        echo("nothing was written; to write the file: redstart init --yes")
        return
    if yes or confirm("Write this file?", default=True):
        write(proposal)
        echo(f"wrote {proposal.path}")
    else:
        echo("nothing was written")
