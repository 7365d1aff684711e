"""Small git repos for tests of commands that read a repo's history."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
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


def commit_each(folder: Path, changes: Sequence[Files]) -> None:
    """Commit these changes one after another on the current branch, as `commit 1`, `commit 2` and so on."""
    branch = git(folder, "symbolic-ref", "HEAD").strip()
    lines: list[str] = []
    for number, files in enumerate(changes, 1):
        lines += [f"commit {branch}", "committer Ann <ann@example.org> 1762000000 +0000"]
        lines += [_format_data(f"commit {number}"), f"from {branch}^0" if number == 1 else ""]
        lines += [
            f"D {name}" if text is None else f"M 100644 inline {name}\n{_format_data(text)}"
            for name, text in files.items()
        ]
    stream = "\n".join(line for line in lines if line) + "\n"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, check=True, input=stream, text=True)
    git(folder, "reset", "-q", "--hard")


def _format_data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"
