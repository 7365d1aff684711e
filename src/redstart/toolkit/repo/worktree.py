"""Merge, read and replace files of a user's folder without following a link or losing a byte."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import StoreError
from redstart.toolkit.base.git import GitFailed, run_git

_LOOKS_BINARY = 8000
"""How many bytes are searched for a NUL: git's own rule."""
_CONFLICTS = re.compile(r"exit code \d+$")
"""How `git merge-file` fails when the sides conflict: it prints only the number."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class Version(NamedTuple):
    """A regular file. `mode` holds its exact permissions if they are known; a snapshot stores only one bit."""

    data: bytes
    executable: bool
    mode: int | None = None


class FileChange(NamedTuple):
    """The planned change of one file. None means no file."""

    path: str
    before: Version | None
    after: Version | None


class FileRefusal(NamedTuple):
    """Why one file cannot be changed."""

    path: str
    reason: str


class FileMove(NamedTuple):
    """One file as it is now, and as it will be."""

    path: str
    old: Version | None
    new: Version | None


def is_same_version(left: Version | None, right: Version | None) -> bool:
    """Whether two versions hold the same bytes and the same executable bit."""
    if left is None or right is None:
        return left is right
    return left[:2] == right[:2]


def merge_three_way(change: FileChange, current: Version | None) -> Version | FileRefusal | None:
    """Return `current` with the change made; `current` unchanged if it contains the change already."""
    path, before, after = change
    if before is None:
        if current is None or (after is not None and current.data == after.data):
            return current or after
        return FileRefusal(path, "a file with different content already exists")
    if current is None:
        return None if after is None else FileRefusal(path, "it does not exist")
    if after is None:
        return (
            None if current.data == before.data else FileRefusal(path, "the patch deletes it, but it was changed since")
        )
    data = _merge(before.data, current.data, after.data)
    if data is None:
        return FileRefusal(path, "it was changed in the same place")
    mode_changed = before.executable != after.executable
    return current._replace(data=data, executable=after.executable if mode_changed else current.executable)


def _merge(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return both changes in one text; None if they conflict, or if the file is binary."""
    if ours in (base, theirs) or base == theirs:
        return theirs if ours == base else ours
    if any(b"\0" in side[:_LOOKS_BINARY] for side in (base, ours, theirs)):
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, side in (("ours", ours), ("base", base), ("theirs", theirs)):
            (Path(folder) / name).write_bytes(side)
        try:
            return run_git("merge-file", "-p", "ours", "base", "theirs", cwd=Path(folder))
        except GitFailed as error:
            if _CONFLICTS.search(str(error)):
                return None
            raise


def read_file_version(root: Path, path: str) -> Version | FileRefusal | None:
    """Return the file at a path of a folder, None if there is none; a refusal if we may not write a file there."""
    try:
        with _open_parent(root, path) as (folder, name):
            return _read(folder, name)
    except _Refused as refused:
        return FileRefusal(path, str(refused))
    except FileNotFoundError:
        return None
    except OSError as error:
        return FileRefusal(path, f"it cannot be read: {error.strerror or error}")


def list_missing_folders(root: Path, paths: Iterable[str]) -> list[str]:
    """List the folders that must be made for files at these paths, outer ones first."""
    parents = {str(parent) for path in paths for parent in Path(path).parents if str(parent) != "."}
    return sorted(parent for parent in parents if not (root / parent).is_dir())


def replace_files(root: Path, moves: Sequence[FileMove], mark: str) -> list[FileRefusal]:
    """Carry out all moves: first write every new file next to its target, then rename each file to its target.

    Returns refusals, with nothing changed, if a file is no longer `old`. Raises `StoreError` if the disk fails; before
    the first rename nothing is changed then. `mark` names the temporary files, for `remove_temporary_files` after a
    crash.
    """
    new_folders = list_missing_folders(root, (move.path for move in moves if move.new is not None))
    try:
        for move in moves:
            if move.new is not None:
                _stage_file(root, move, mark)
        changed = [move.path for move in moves if not _is_unchanged(root, move)]
        if changed:
            _clear(root, moves, mark, new_folders)
            return [FileRefusal(path, "it was changed during the handover") for path in changed]
    except (OSError, _Refused) as error:
        _clear(root, moves, mark, new_folders)
        raise StoreError(f"nothing was changed: {error}") from error
    try:
        for move in moves:
            _settle(root, move, mark)
    except (OSError, _Refused) as error:
        raise StoreError(f"only a part was written: {error}", remedy="repeat the command, or undo it") from error
    return []


def sweep(root: Path, paths: Iterable[str], mark: str) -> None:
    """Remove the temporary files that a killed `replace_files` left."""
    for path in paths:
        with suppress(OSError, _Refused), _open_parent(root, path) as (folder, _):
            os.unlink(_get_temporary_name(path, mark), dir_fd=folder)


def remove_empty(root: Path, folders: Iterable[str]) -> None:
    """Remove the empty ones among the folders, inner ones first."""
    for name in sorted(folders, reverse=True):
        with suppress(OSError, _Refused), _open_parent(root, name) as (folder, base_name):
            os.rmdir(base_name, dir_fd=folder)


class _Refused(Exception):
    """The path leads to a place where nothing may be written."""


@contextmanager
def _open_parent(root: Path, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
    """Open the folder that contains a path's file, without following a link, and yield it and the file's name."""
    *parents, name = path.split("/")
    for part in (*parents, name):
        if part in ("", ".", "..") or part.casefold() == ".git":
            raise _Refused("it is not a valid path for a project file")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parents:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            child = _enter(folder, part)
            os.close(folder)
            folder = child
        yield folder, name
    finally:
        os.close(folder)


def _enter(folder: int, part: str) -> int:
    try:
        child = os.open(part, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise _Refused(f"{part} is not a folder but a link or a file") from error
        raise
    try:
        os.stat(".git", dir_fd=child, follow_symlinks=False)
    except FileNotFoundError:
        return child
    except BaseException:
        os.close(child)
        raise
    os.close(child)
    raise _Refused(f"{part} is another git repo")


def _read(folder: int, name: str) -> Version | None:
    file_stat = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(file_stat.st_mode):
        kinds = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder"}
        raise _Refused(f"it is {kinds.get(stat.S_IFMT(file_stat.st_mode), 'a special file')} now")
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        return Version(file.read(), bool(mode & stat.S_IXUSR), mode)


def _stage_file(root: Path, move: FileMove, mark: str) -> None:
    new = move.new
    if new is None:
        return
    temporary = _get_temporary_name(move.path, mark)
    with _open_parent(root, move.path, make=True) as (folder, name):
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        handle = os.open(temporary, flags, 0o777 if new.executable else 0o666, dir_fd=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(new.data)
            if move.old is not None:
                owner = os.stat(name, dir_fd=folder, follow_symlinks=False)
                with suppress(PermissionError):
                    os.fchown(handle, owner.st_uid, owner.st_gid)
            if new.mode is not None:
                os.fchmod(handle, _get_permissions(new.mode, new.executable))
            file.flush()
            os.fsync(handle)


def _settle(root: Path, move: FileMove, mark: str) -> None:
    with _open_parent(root, move.path) as (folder, name):
        if move.new is None:
            os.unlink(name, dir_fd=folder)
        else:
            os.rename(_get_temporary_name(move.path, mark), name, src_dir_fd=folder, dst_dir_fd=folder)


def _is_unchanged(root: Path, move: FileMove) -> bool:
    current = read_file_version(root, move.path)
    return not isinstance(current, FileRefusal) and is_same_version(current, move.old)


def _clear(root: Path, moves: Sequence[FileMove], mark: str, new_folders: Sequence[str]) -> None:
    sweep(root, (move.path for move in moves), mark)
    remove_empty(root, new_folders)


def _get_permissions(mode: int, executable: bool) -> int:
    """Return the mode with the executable bits set for all who may read, or cleared; unchanged if they fit."""
    if bool(mode & stat.S_IXUSR) == executable:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _get_temporary_name(path: str, mark: str) -> str:
    """Return the same name each time, so that what a crash left is found again."""
    return f".redstart-{mark}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
