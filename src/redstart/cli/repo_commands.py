"""Ask about check commands that the settings of a repo add."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from redstart.cli.output import confirm, echo

if TYPE_CHECKING:
    from redstart.app.settings import Settings


def load_settings(
    project: Path, model: str | None, flags: Mapping[str, object] | None = None, *, somebody_there: bool
) -> Settings:
    """Load the effective settings of a project, with its own check commands unless the user refuses them.

    Raises `ConfigError` as `redstart.app.settings.load` does.
    """
    from redstart.app.settings import load

    return settle_commands(load(model, project, flags), project, somebody_there=somebody_there)


def settle_commands(settings: Settings, project: Path, *, somebody_there: bool) -> Settings:
    """Show such commands and ask about them once. Return the settings without the commands if the user refuses them.

    If nobody can be asked, the commands run, like the repo's own test command, and standard error names them.
    """
    from redstart.app.repo_commands import approve_commands, is_approved, repo_commands, without_commands
    from redstart.core.noun import many
    from redstart.core.visible import visible_line

    commands = repo_commands(settings, project)
    if commands is None or is_approved(settings, commands):
        return settings
    echo(f"{commands.origin} adds {many(len(commands.commands), 'check command')}:", err=True)
    for name, text in commands.commands.items():
        echo(f"  {visible_line(name)}: {visible_line(text)}", err=True)
    if not somebody_there:
        return settings
    if confirm("Run these commands in the sandbox, now and in later runs?", default=False):
        approve_commands(settings, commands)
        return settings
    return without_commands(settings, commands)
