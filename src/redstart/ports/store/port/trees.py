"""The port to the files of snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from redstart.core.change import Snapshot


class TreeChange(NamedTuple):
    """The difference between two trees at one path. Modes are those of git; `000000` means no file."""

    path: str
    old_mode: str
    new_mode: str


class DiffRefused(NamedTuple):
    """The reason why git did not apply a diff."""

    message: str


class Trees(Protocol):
    """The files of snapshots. Never reads or writes the user's directories, and never runs code of the repo."""

    def checkout(self, snapshot: Snapshot) -> AbstractContextManager[Path]:
        """Provide a directory with exactly the files of the snapshot. The caller owns it; it is removed at the end."""
        ...

    def list_files(self, snapshot: Snapshot) -> list[str]:
        """List every path, sorted."""
        ...

    def read(self, snapshot: Snapshot, path: str) -> bytes | None:
        """Return a regular file's bytes, or None if there is no such file."""
        ...

    def get_size(self, snapshot: Snapshot, path: str) -> int | None:
        """Return a regular file's size without reading it, or None if there is no such file."""
        ...

    def write(self, snapshot: Snapshot, files: Mapping[str, bytes | None]) -> Snapshot:
        """Return the snapshot with these files written. None removes a file; modes of existing files are kept.

        Raises `PolicyViolation` for a path that no tree may contain (`.git`, `..`, absolute).
        """
        ...

    def apply(self, snapshot: Snapshot, diff: bytes) -> Snapshot | DiffRefused:
        """Return the snapshot with a unified diff applied, completely or not at all."""
        ...

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        """Return a unified diff between two snapshots, for people to read."""
        ...

    def list_changes(self, old: Snapshot, new: Snapshot) -> list[TreeChange]:
        """List every path that differs."""
        ...

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Snapshot | tuple[str, ...]:
        """Merge both changes of `base` into one tree, or return the conflicting paths."""
        ...
