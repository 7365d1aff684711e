"""Blobs as files of a folder."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from redstart.core.errors import StoreError

_NAME = re.compile(r"[0-9a-f]{64}")


class DirectoryBlobs:
    """A file for each blob, in folders by the first two letters. Safe for many processes at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Raises `StoreError` if it cannot be written."""
        name = hashlib.sha256(data).hexdigest()
        path = self._path(name)
        try:
            if _is_there(path, len(data)):
                os.utime(path)  # new again: whoever prunes what is old and unreferenced must not take it
            else:
                _write(path, data)
        except OSError as error:
            raise StoreError(f"blob {name} cannot be written: {error.strerror or error}") from error
        return name

    def get(self, name: str) -> bytes:
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} is not the name of a blob")
        try:
            data = self._path(name).read_bytes()
        except FileNotFoundError as error:
            raise StoreError(f"blob {name} is missing") from error
        except OSError as error:
            raise StoreError(f"blob {name} cannot be read: {error.strerror or error}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise StoreError(f"blob {name} is damaged: its bytes are not what was put")
        return data

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name


def _is_there(path: Path, size: int) -> bool:
    """A file of another size was cut short by something; it is written again."""
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False


def _write(path: Path, data: bytes) -> None:
    """All of the file or none of it, and on the disk: first its bytes, then its name, then its folder's name."""
    new_folder = not path.parent.is_dir()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync(path.parent)
    if new_folder:
        _sync(path.parent.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
