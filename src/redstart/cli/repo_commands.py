"""Ask about check commands that the settings of a repo add."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from redstart.cli.output import confirm, echo

if TYPE_CHECKING:
    from redstart.app.settings import Settings


def load_settings(
    project: Path, model: str | None, flags: Mapping[str, object] | None = None, *, can_ask: bool
) -> Settings:
    """Load the effective settings of a project, with its own check commands unless the user refuses them.

    Raises `ConfigError` as `redstart.app.settings.load` does.
    """
    from redstart.app.settings import load

    return settle_commands(load(model, project, flags), project, can_ask=can_ask)


def settle_commands(settings: Settings, project: Path, *, can_ask: bool) -> Settings:
    """Show such commands and ask about them once. Return the settings without the commands if the user refuses them.

    If nobody can be asked, the commands run, like the repo's own test command, and standard error names them.
    """
    from redstart.app.repo_commands import approve_commands, find_repo_commands, is_approved, without_commands
    from redstart.core.frozen import format_count
    from redstart.core.safe_text import escape_line

    commands = find_repo_commands(settings, project)
    if commands is None or is_approved(settings, commands):
        return settings
    echo(f"{commands.origin} adds {format_count(len(commands.commands), 'check command')}:", err=True)
    for name, text in commands.commands.items():
        echo(f"  {escape_line(name)}: {escape_line(text)}", err=True)
    if not can_ask:
        return settings
    if confirm("Run these commands in the sandbox, now and in later runs?", default=False):
        approve_commands(settings, commands)
        return settings
    return without_commands(settings, commands)
