"""Propose a first `redstart.toml` for a project from its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from redstart.app.settings import Settings, collect_setting_names
from redstart.app.settings.layers import PROJECT_FILE, PROJECT_TABLE, read_project_layer
from redstart.core.errors import ConfigError
from redstart.toolkit.base.code_files import FOREIGN
from redstart.toolkit.languages.registry import list_languages

LARGEST_READ = 1_000_000
"""The number of bytes to read of a file: more than enough to recognize tests."""


class Proposal(NamedTuple):
    path: Path
    runner: str | None
    """None if no tests were found."""
    text: str


def propose(folder: Path) -> Proposal:
    """Return the file to write. Nothing is written, and no code of the project runs.

    Raises `ConfigError` if the project already has settings or is not a directory.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a directory")
    path = folder.resolve() / PROJECT_FILE
    if os.path.lexists(path):
        raise _create_exists_error(path)
    if read_project_layer(folder, collect_setting_names(Settings)):
        raise ConfigError(f"[{PROJECT_TABLE}] of {folder / 'pyproject.toml'} already contains settings")
    runner, command = _detect_suite(folder)
    return Proposal(path, runner, _render_settings(command))


def _detect_suite(folder: Path) -> tuple[str | None, str]:
    """Return the runner of the folder's tests and the command that starts it."""
    paths = list(list_project_files(folder))
    for language in list_languages():
        if language.commands and (place := language.find_suite("", paths, lambda name: read_start(folder / name))):
            return place.runner, language.commands[place.runner]
    return None, ""


def write(proposal: Proposal) -> None:
    """Write the proposed file. An existing file is never overwritten: raises `ConfigError` if one was created in the
    meantime.
    """
    try:
        with proposal.path.open("x", encoding="utf-8") as file:
            file.write(proposal.text)
    except FileExistsError as error:
        raise _create_exists_error(proposal.path) from error
    except OSError as error:
        raise ConfigError(f"{proposal.path} cannot be written: {error.strerror or error}") from error


def _create_exists_error(path: Path) -> ConfigError:
    return ConfigError(f"{path} already exists", remedy="to see the settings in effect: redstart config show")


def _render_settings(command: str) -> str:
    tests = f'command = "{command}"' if command else '# command = "python -m pytest"   (no tests found)'
    return f"""# Settings of this project for Redstart. To see the settings in effect: redstart config show
# A project may set its test command, protect files and lower limits. Its users set everything else.

# Files that no patch may change, besides the tests and their configuration.
protect = []

[tests]
{tests}

# [limits]
# attempts = 3
# usd = 1.0
"""


def list_project_files(folder: Path) -> Iterator[str]:
    """Yield the files of a project relative to the folder, without those of its environments and builds."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in FOREIGN and not name.startswith("."))
        for name in sorted(names):
            yield (Path(place) / name).relative_to(folder).as_posix()


def read_start(path: Path) -> bytes | None:
    """Return the first million bytes; None if it is not a plain file or cannot be read."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_READ)
    except OSError:
        return None
