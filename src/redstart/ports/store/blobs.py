"""Blobs as files in a directory."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from redstart.core.errors import BlobMissing, StoreError
from redstart.ports.store.port.blobs import KeptBlob

_NAME = re.compile(r"[0-9a-f]{64}")
_TEMPORARY_PREFIX = ".new-"


class DirectoryBlobs:
    """One file per blob, in directories by the first two characters. Safe for concurrent processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Store the bytes and return their name. Raises `StoreError` if they cannot be written."""
        name = hashlib.sha256(data).hexdigest()
        path = self._get_path(name)
        try:
            if not self._refresh(path, len(data)):
                _write(path, data)
        except OSError as error:
            raise StoreError(f"blob {name} cannot be written: {error.strerror or error}") from error
        return name

    def get(self, name: str) -> bytes:
        if not _NAME.fullmatch(name):
            raise StoreError(f"{name!r} is not the name of a blob")
        try:
            data = self._get_path(name).read_bytes()
        except FileNotFoundError as error:
            raise BlobMissing(f"blob {name} is missing") from error
        except OSError as error:
            raise StoreError(f"blob {name} cannot be read: {error.strerror or error}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise StoreError(f"blob {name} is damaged: its bytes are not what was put")
        return data

    def list_blobs(self) -> Iterator[KeptBlob]:
        """List every blob, and the remains of interrupted writes."""
        for path in self._folder.glob("??/*"):
            if _NAME.fullmatch(path.name) or path.name.startswith(_TEMPORARY_PREFIX):
                with suppress(OSError):
                    status = path.stat()
                    yield KeptBlob(path.name, status.st_size, status.st_mtime)

    def read_texts(self, names: Iterable[str]) -> Iterator[str]:
        """Read those of the blobs that start like JSON. Missing blobs are skipped."""
        for name in names:
            with suppress(OSError), self._get_path(name).open("rb") as file:
                if file.read(1) == b"{":
                    yield file.read().decode(errors="replace")

    def drop(self, names: Iterable[str], before: float) -> None:
        """Remove those of the blobs that were last put before that time. A blob that is put meanwhile stays."""
        selected = frozenset(names)
        for path in [item for item in self._folder.glob("??/*") if item.name in selected]:
            with suppress(OSError), self._lock(fcntl.LOCK_EX):
                if path.stat().st_mtime < before:
                    path.unlink()

    def _refresh(self, path: Path, size: int) -> bool:
        """Refresh the time of an existing blob, so that it is not removed as old. Returns whether it exists."""
        if not _is_complete(path, size):
            return False
        with self._lock(fcntl.LOCK_SH):
            if exists := _is_complete(path, size):
                os.utime(path)
            return exists

    @contextmanager
    def _lock(self, operation: int) -> Generator[None]:
        """Lock the directory, so that nobody uses a blob between the check of its age and its removal."""
        handle = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, operation)
            yield
        finally:
            os.close(handle)

    def _get_path(self, name: str) -> Path:
        return self._folder / name[:2] / name


def _is_complete(path: Path, size: int) -> bool:
    """Return whether the file exists with this size. A truncated file is written again."""
    try:
        return path.stat().st_size == size
    except FileNotFoundError:
        return False


def _write(path: Path, data: bytes) -> None:
    """Write the file atomically and durably: first its bytes, then its name, then its directory's name."""
    new_folder = not path.parent.is_dir()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_TEMPORARY_PREFIX)
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
