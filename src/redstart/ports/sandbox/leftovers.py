"""Marks that show which process created a folder or a group, and whether that process still exists."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "run-"


def mark(pid: int | None = None) -> str:
    """Identify a process by its ID and start time, since IDs are reused; a dead one by its ID only."""
    pid = os.getpid() if pid is None else pid
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(pid)
    return f"{pid}-{stat.rpartition(')')[2].split()[19]}"


def is_abandoned(name: str, prefix: str) -> bool:
    """Whether the process in this name (a prefix, a mark and a suffix) is dead."""
    pid, _, rest = name.removeprefix(prefix).partition("-")
    began, _, suffix = rest.partition("-")
    has_mark = name.startswith(prefix) and pid.isdigit() and began.isdigit() and suffix
    return bool(has_mark) and mark(int(pid)) != f"{pid}-{began}"


@contextmanager
def open_temporary_folder(kind: str) -> Generator[Path]:
    """Create a temporary folder and remove it at the end. Folders of the same kind that killed processes left are
    removed first.
    """
    prefix = f"redstart-{kind}-"
    sweep_folders(Path(tempfile.gettempdir()), prefix)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{mark()}-") as folder:
        yield Path(folder)


def sweep_folders(scratch: Path, prefix: str = FOLDER) -> None:
    """Remove the folders with this prefix (by default, of executions) that killed processes left."""
    if not Path("/proc/self/stat").exists():
        return
    for folder in scratch.glob(f"{prefix}*") if scratch.is_dir() else ():
        if is_abandoned(folder.name, prefix):
            shutil.rmtree(folder, ignore_errors=True)
