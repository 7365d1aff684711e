"""Blobs as files of a folder."""

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
_HALF = ".new-"


class DirectoryBlobs:
    """A file for each blob, in folders by the first two letters. Safe for many processes at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Raises `StoreError` if it cannot be written."""
        name = hashlib.sha256(data).hexdigest()
        path = self._path(name)
        try:
            if not self._put_again(path, len(data)):
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
            raise BlobMissing(f"blob {name} is missing") from error
        except OSError as error:
            raise StoreError(f"blob {name} cannot be read: {error.strerror or error}") from error
        if hashlib.sha256(data).hexdigest() != name:
            raise StoreError(f"blob {name} is damaged: its bytes are not what was put")
        return data

    def kept(self) -> Iterator[KeptBlob]:
        """Every blob, and what an interrupted write left beside them."""
        for path in self._folder.glob("??/*"):
            if _NAME.fullmatch(path.name) or path.name.startswith(_HALF):
                with suppress(OSError):
                    status = path.stat()
                    yield KeptBlob(path.name, status.st_size, status.st_mtime)

    def texts(self, names: Iterable[str]) -> Iterator[str]:
        """What those of them hold that begin as JSON does; of one that is not there nothing."""
        for name in names:
            with suppress(OSError), self._path(name).open("rb") as file:
                if file.read(1) == b"{":
                    yield file.read().decode(errors="replace")

    def drop(self, names: Iterable[str], before: float) -> None:
        """Removes those of them that were last put before that moment; one that is put meanwhile stays."""
        wanted = frozenset(names)
        for path in [item for item in self._folder.glob("??/*") if item.name in wanted]:
            with suppress(OSError), self._lock(fcntl.LOCK_EX):
                if path.stat().st_mtime < before:
                    path.unlink()

    def _put_again(self, path: Path, size: int) -> bool:
        """Makes what is there new again, so that whoever removes what is old does not take it."""
        if not _is_there(path, size):
            return False
        with self._lock(fcntl.LOCK_SH):
            if there := _is_there(path, size):
                os.utime(path)
            return there

    @contextmanager
    def _lock(self, how: int) -> Generator[None]:
        """Between finding a blob old and removing it nobody may find it there."""
        handle = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

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
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_HALF)
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
