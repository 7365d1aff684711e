"""A folder in a given state, a patch for it, and what the handover tests need of both."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.handover import (
    HandoverContext,
    HandoverEvent,
    HandoverOutcome,
    apply_patch,
    list_changes,
    undo_patch,
)
from redstart.toolkit.repo.trees import GitTrees

TEXT = b"".join(b"line %d\n" % number for number in range(1, 31))
CRLF = TEXT.replace(b"\n", b"\r\n")
OLD, NEW = b"line 15", b"fixed 15"
FILES = {"calc.py": TEXT, "pkg/util.py": TEXT, "other.py": b"other\n", ".gitignore": b"*.log\nbuild/\n"}
WEIRD = os.fsdecode(b"na\xefve \xff.py")


class State(NamedTuple):
    """What a folder holds, which files a patch of it changes, and what happens to the folder before it is applied."""

    arrange: Callable[[Repo], None]
    happened: HandoverEvent
    base: Mapping[str, bytes]
    patch: Mapping[str, bytes | None] | None
    """None: `OLD` becomes `NEW` in calc.py and pkg/util.py. The result is compared with this, too."""
    is_git: bool


STATES: dict[str, State] = {}
"""Filled by the functions below: each arranges what its name says."""


def register_state(event: str, *, base: Mapping[str, bytes] | None = None, patch=None, is_git: bool = True):
    def keep(arrange: Callable[[Repo], None]) -> None:
        STATES[arrange.__name__] = State(arrange, HandoverEvent(event), {**FILES, **(base or {})}, patch, is_git)

    return keep


class Repo:
    def __init__(self, folder: Path, home: Path, initial_state: State) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for path, data in initial_state.base.items():
            self.write(path, data)
        if initial_state.is_git:
            self.git("init", "-q", "-b", "main")
            self.git("add", "-A")
            self.git("commit", "-qm", "one")
        self.blobs = DirectoryBlobs(home / "blobs")
        self.trees = GitTrees(home / "snapshots", self.blobs)
        self.base = self.trees.take(folder)
        changed = initial_state.patch or {path: TEXT.replace(OLD, NEW) for path in ("calc.py", "pkg/util.py")}
        self.result = self.trees.write(self.base, changed)
        self.changes = list_changes(self.trees, self.base, self.result)
        self.desk = HandoverContext(folder, self.blobs, home / "applied" / "run.json", "run")

    def apply(self) -> HandoverOutcome:
        return apply_patch(self.desk, self.changes)

    def undo(self) -> HandoverOutcome:
        return undo_patch(self.desk)

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        identity = {f"GIT_{item}_{field}": "a@b" for item in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environ = {
            **inherited,
            **identity,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        command = ("git", "-c", "protocol.file.allow=always", *arguments)
        completed = subprocess.run(command, cwd=cwd or self.folder, capture_output=True, env=environ, check=False)
        assert completed.returncode == 0 or arguments[0] == "merge", completed.stderr
        return completed.stdout.decode(errors="surrogateescape")

    def write(self, path: str, data: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(data)

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def edit(self, path: str, old: bytes, new: bytes) -> None:
        data = self.read(path)
        assert old in data
        self.write(path, data.replace(old, new))

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", "more")

    def list_entries(self) -> dict[str, tuple[int, bytes]]:
        """Return every file, link and folder with its mode: the user's, and git's own data where it can be lost."""
        entries: dict[str, tuple[int, bytes]] = {}
        for folder, folders, files in os.walk(self.folder):
            for name in (*folders, *files):
                path = Path(folder, name)
                location = path.lstat().st_mode, str(path.relative_to(self.folder))
                if path.is_symlink():
                    entries[location[1]] = (location[0], os.fsencode(path.readlink()))
                else:
                    entries[location[1]] = (location[0], path.read_bytes() if path.is_file() else b"")
        return entries


def exclude_patched(entries: Mapping[str, tuple[int, bytes]], repo: Repo) -> dict[str, tuple[int, bytes]]:
    """Return every entry except the files of the patch."""
    return {path: item for path, item in entries.items() if path not in {change.path for change in repo.changes}}
