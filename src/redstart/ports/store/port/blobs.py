"""The port to blobs: bytes by their SHA-256."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol


class KeptBlob(NamedTuple):
    """A blob as it lies there."""

    name: str
    size: int
    put: float
    """When it was last put, in seconds since the epoch."""


class Blobs(Protocol):
    """Bytes by their SHA-256. What was put is never changed."""

    def put(self, data: bytes) -> str:
        """Durable when it returns; putting the same bytes again is free. The name is the hexadecimal SHA-256."""
        ...

    def get(self, name: str) -> bytes:
        """Raises `BlobMissing` if it is not there, and `StoreError` if its bytes are not what the name says."""
        ...


class SweptBlobs(Blobs, Protocol):
    """Blobs of which those that nobody needs can be removed while others put more."""

    def kept(self) -> Iterator[KeptBlob]:
        """Every blob, and what an interrupted write left."""
        ...

    def texts(self, names: Iterable[str]) -> Iterator[str]:
        """What those of them hold that begin as JSON does; of one that is not there nothing."""
        ...

    def drop(self, names: Iterable[str], before: float) -> None:
        """Removes those of them that were last put before that moment; one that is put meanwhile stays."""
        ...
