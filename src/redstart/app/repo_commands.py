"""Find the check commands of a repo's own settings and store the user's approval of them.

They run in the sandbox, as the repo's tests do. The user sees them and is asked once. An approval is stored in our data
as a digest of the repo's directory and the commands, so that a change of either asks again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from redstart.app.settings import Settings, keys_of, layers
from redstart.core.errors import ConfigError

FILE = "approved-commands"
"""A file in our data with one digest per line."""


class RepoCommands(NamedTuple):
    """Commands by name, as written in the repo's own file."""

    origin: str
    commands: Mapping[str, str]
    digest: str


def repo_commands(settings: Settings, project: Path) -> RepoCommands | None:
    """Return the commands in force that come from the repo; None if there are none. The user's tools are excluded."""
    given = layers.of_project(project, keys_of(Settings)).get(layers.TOOLS)
    if given is None:
        return None
    named = cast("dict[str, str]", given.value)
    theirs = {name: text for name, text in named.items() if text and settings.checks.commands.get(name) == text}
    told = json.dumps([str(project.resolve()), sorted(theirs.items())])
    return RepoCommands(given.origin, theirs, hashlib.sha256(told.encode()).hexdigest()) if theirs else None


def is_approved(settings: Settings, commands: RepoCommands) -> bool:
    """Whether the user approved exactly these commands in this directory before."""
    try:
        return commands.digest in (settings.home / FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise ConfigError(f"{settings.home / FILE} cannot be read: {error}") from error


def approve_commands(settings: Settings, commands: RepoCommands) -> None:
    """Store the user's approval. Raises `ConfigError` if it cannot be written."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        with (settings.home / FILE).open("a", encoding="utf-8") as file:
            file.write(f"{commands.digest}\n")
    except OSError as error:
        raise ConfigError(f"{settings.home / FILE} cannot be written: {error.strerror or error}") from error


def without_commands(settings: Settings, commands: RepoCommands) -> Settings:
    """Return settings that run none of these commands."""
    kept = {name: text for name, text in settings.checks.commands.items() if name not in commands.commands}
    return settings.model_copy(update={"checks": settings.checks.model_copy(update={"commands": kept})})
