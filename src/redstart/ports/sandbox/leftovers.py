"""Marks by which one sees later who made a folder or a group, and whether its maker still lives."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "run-"


def mark(pid: int | None = None) -> str:
    """A process by its id and when it began, since ids come again; of a dead one only the id."""
    pid = os.getpid() if pid is None else pid
    try:
        about = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(pid)
    return f"{pid}-{about.rpartition(')')[2].split()[19]}"


def abandoned(name: str, prefix: str) -> bool:
    """Whether what has this name, of a prefix, a mark and some more, was made by a process that is dead."""
    pid, _, rest = name.removeprefix(prefix).partition("-")
    began, _, more = rest.partition("-")
    made_so = name.startswith(prefix) and pid.isdigit() and began.isdigit() and more
    return bool(made_so) and mark(int(pid)) != f"{pid}-{began}"


@contextmanager
def passing(what: str) -> Generator[Path]:
    """A temporary folder, removed at the end; those of the same kind whose makers were killed go first."""
    prefix = f"redstart-{what}-"
    sweep_folders(Path(tempfile.gettempdir()), prefix)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{mark()}-") as folder:
        yield Path(folder)


def sweep_folders(scratch: Path, prefix: str = FOLDER) -> None:
    """Removes the folders of a kind, executions if not said, whose makers are dead: who was killed could not."""
    if not Path("/proc/self/stat").exists():
        return
    for folder in scratch.glob(f"{prefix}*") if scratch.is_dir() else ():
        if abandoned(folder.name, prefix):
            shutil.rmtree(folder, ignore_errors=True)
