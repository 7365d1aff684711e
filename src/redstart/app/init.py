"""A first `redstart.toml` for a project, from what can be seen of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from redstart.app.layers import PROJECT_FILE, PROJECT_TABLE, of_project
from redstart.app.settings import Settings, keys_of
from redstart.core.errors import ConfigError
from redstart.toolkit.suites.detect import FOREIGN, detect_runner

LARGEST_READ = 1_000_000
"""How much of a file is looked at; tests are told from others by less."""

_COMMANDS = {"pytest": "python -m pytest", "unittest": "python -m unittest"}


class Proposal(NamedTuple):
    path: Path
    runner: str | None
    """None where no tests were found."""
    text: str


def propose(folder: Path) -> Proposal:
    """The file that would be written. Nothing is written and nothing of the project is run.

    Raises `ConfigError` where the project has settings already, or is no folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder")
    path = folder.resolve() / PROJECT_FILE
    if os.path.lexists(path):
        raise _there_already(path)
    if of_project(folder, keys_of(Settings)):
        raise ConfigError(f"[{PROJECT_TABLE}] of {folder / 'pyproject.toml'} sets something already")
    runner = detect_runner(_files(folder), lambda name: _read(folder / name))
    return Proposal(path, runner, _text(runner))


def write(proposal: Proposal) -> None:
    """Raises `ConfigError` where something has come to lie there: it is never overwritten."""
    try:
        with proposal.path.open("x", encoding="utf-8") as file:
            file.write(proposal.text)
    except FileExistsError as error:
        raise _there_already(proposal.path) from error
    except OSError as error:
        raise ConfigError(f"{proposal.path} cannot be written: {error.strerror or error}") from error


def _there_already(path: Path) -> ConfigError:
    return ConfigError(f"{path} is there already", remedy="redstart config show tells what is in force")


def _text(runner: str | None) -> str:
    tests = f'command = "{_COMMANDS[runner]}"' if runner else '# command = "python -m pytest"   (no tests were found)'
    return f"""# What redstart should know of this project; redstart config show tells what is in force.
# A project may name its tests, protect files and lower limits. All else is for its users to set.

# Files that no patch may change, besides the tests and what configures them.
protect = []

[tests]
{tests}

# [limits]
# iterations = 3
# usd = 1.0
"""


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in FOREIGN and not name.startswith("."))
        for name in sorted(names):
            yield (Path(place) / name).relative_to(folder).as_posix()


def _read(path: Path) -> bytes | None:
    if path.is_symlink() or not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_READ)
    except OSError:
        return None
