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

from redstart.app.settings import Settings, collect_setting_names, layers
from redstart.core.errors import ConfigError

FILE = "approved-commands"
"""A file in our data with one digest per line."""


class RepoCommands(NamedTuple):
    """Commands by name, as written in the repo's own file."""

    origin: str
    commands: Mapping[str, str]
    digest: str


def find_repo_commands(settings: Settings, project: Path) -> RepoCommands | None:
    """Return the commands in force that come from the repo; None if there are none. The user's tools are excluded."""
    layer_value = layers.read_project_layer(project, collect_setting_names(Settings)).get(layers.TOOLS)
    if layer_value is None:
        return None
    configured = cast("dict[str, str]", layer_value.value)
    active_commands = {
        name: text for name, text in configured.items() if text and settings.checks.commands.get(name) == text
    }
    payload = json.dumps([str(project.resolve()), sorted(active_commands.items())])
    return (
        RepoCommands(layer_value.origin, active_commands, hashlib.sha256(payload.encode()).hexdigest())
        if active_commands
        else None
    )


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
    remaining = {name: text for name, text in settings.checks.commands.items() if name not in commands.commands}
    return settings.model_copy(update={"checks": settings.checks.model_copy(update={"commands": remaining})})
