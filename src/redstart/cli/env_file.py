"""`--env-file`, for every command that asks a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from redstart.cli.output import echo

EnvFile = Annotated[
    Path | None,
    typer.Option("--env-file", metavar="FILE", help="Take API keys, and nothing else, from this file."),
]


def use_env_file(file: Path | None, folder: Path) -> None:
    """Takes the keys of the file into this process and says which; without one, says that a `.env` is not loaded.

    To be called before the settings are loaded. What it says goes to standard error: it is not part of any result.
    """
    if file is None:
        if (folder / ".env").is_file():
            echo("note: .env is not loaded; to take API keys from it: --env-file .env", err=True)
        return
    import os

    from redstart.app.settings import load
    from redstart.app.settings.env_file import key_variables, take_keys
    from redstart.core.noun import many

    taken = take_keys(file, key_variables(load()), os.environ)
    names = f" ({', '.join(taken)})" if taken else ""
    echo(f"{file}: took {many(len(taken), 'API key')}{names} and nothing else", err=True)
