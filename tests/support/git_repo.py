"""Small git repos for tests of commands that read a repo's history."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, str | None]
"""The text of each file, by path; None for a file that is removed."""


def make_repo(folder: Path, files: Files) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "--initial-branch=main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.org")
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "start")
    return folder


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def write(folder: Path, files: Files) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)


def hash_files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, the data of git included."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
