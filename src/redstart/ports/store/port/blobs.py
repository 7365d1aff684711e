"""The port to blobs: bytes addressed by their SHA-256."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol


class KeptBlob(NamedTuple):
    """A stored blob."""

    name: str
    size: int
    put_at: float
    """The time of the last put, in seconds since the epoch."""


class Blobs(Protocol):
    """Bytes addressed by their SHA-256. A stored blob never changes."""

    def put(self, data: bytes) -> str:
        """Store the bytes and return their name, the hexadecimal SHA-256.

        The bytes are durable when it returns. Putting the same bytes again is free.
        """
        ...

    def get(self, name: str) -> bytes:
        """Read a blob. Raises `BlobMissing` if it is missing, and `StoreError` if its bytes do not match its name."""
        ...


class SweptBlobs(Blobs, Protocol):
    """Blobs that can be removed when nobody needs them, while others put more."""

    def list_blobs(self) -> Iterator[KeptBlob]:
        """List every blob, and the remains of interrupted writes."""
        ...

    def read_texts(self, names: Iterable[str]) -> Iterator[str]:
        """Read those of the blobs that start like JSON. Missing blobs are skipped."""
        ...

    def drop(self, names: Iterable[str], before: float) -> None:
        """Remove those of the blobs that were last put before that time. A blob that is put meanwhile stays."""
        ...
