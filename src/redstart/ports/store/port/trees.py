"""The port to the files of snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from redstart.core.change import Snapshot


class TreeChange(NamedTuple):
    """What differs between two trees at one path. Modes are git's, `000000` where there is no file."""

    path: str
    old_mode: str
    new_mode: str


class DiffRefused(NamedTuple):
    """Why git would not apply a diff."""

    message: str


class Trees(Protocol):
    """The files of snapshots. Reads and writes no folder of the user's and runs no code of the repo's."""

    def checkout(self, snapshot: Snapshot) -> AbstractContextManager[Path]:
        """A folder with exactly the files of the snapshot, the caller's own, removed at the end."""
        ...

    def files(self, snapshot: Snapshot) -> list[str]:
        """Every path, sorted."""
        ...

    def read(self, snapshot: Snapshot, path: str) -> bytes | None:
        """A regular file's bytes; None where there is none at that path."""
        ...

    def size(self, snapshot: Snapshot, path: str) -> int | None:
        """A regular file's size, told without reading it; None where there is none at that path."""
        ...

    def write(self, snapshot: Snapshot, files: Mapping[str, bytes | None]) -> Snapshot:
        """The snapshot with these files instead (None takes one away); modes of existing files are kept.

        Raises `PolicyViolation` for a path that no tree may hold (`.git`, `..`, absolute).
        """
        ...

    def apply(self, snapshot: Snapshot, diff: bytes) -> Snapshot | DiffRefused:
        """The snapshot with a unified diff applied, all of it or nothing."""
        ...

    def diff(self, old: Snapshot, new: Snapshot) -> bytes:
        """A unified diff from one to the other, as a person reads it."""
        ...

    def changes(self, old: Snapshot, new: Snapshot) -> list[TreeChange]:
        """Every path that differs."""
        ...

    def merge(self, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> Snapshot | tuple[str, ...]:
        """Both changes of `base` in one tree; where they are at odds, the paths that they are at odds about."""
        ...
