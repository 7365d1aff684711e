"""What every blob store does. Subclass it as `Test...` with the fixture `blobs`, and say how to damage one."""

from __future__ import annotations

import hashlib

import pytest

from redstart.core.errors import StoreError
from redstart.ports.store.port import Blobs


class BlobsContract:
    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        """Puts other bytes where those of `name` are kept."""
        raise NotImplementedError

    @pytest.mark.parametrize("data", [b"", b"one", bytes(range(256)) * 4096], ids=["empty", "short", "long"])
    def test_what_was_put_comes_back(self, blobs: Blobs, data: bytes) -> None:
        name = blobs.put(data)
        assert name == hashlib.sha256(data).hexdigest()
        assert blobs.get(name) == data

    def test_putting_again_gives_the_same_name(self, blobs: Blobs) -> None:
        other = blobs.put(b"other")
        assert blobs.put(b"one") == blobs.put(b"one") != other
        assert blobs.get(blobs.put(b"one")) == b"one"
        assert blobs.get(other) == b"other"

    def test_what_was_never_put_is_missing(self, blobs: Blobs) -> None:
        blobs.put(b"one")
        with pytest.raises(StoreError):
            blobs.get(hashlib.sha256(b"two").hexdigest())

    @pytest.mark.parametrize("name", ["", "ab", "../" * 20 + "etc/passwd", "/etc/passwd", "Z" * 64, "a" * 64 + "\n"])
    def test_what_is_no_name_is_missing(self, blobs: Blobs, name: str) -> None:
        with pytest.raises(StoreError):
            blobs.get(name)

    @pytest.mark.parametrize("damaged", [b"", b"on", b"two", b"one more"])
    def test_damage_is_noticed(self, blobs: Blobs, damaged: bytes) -> None:
        name = blobs.put(b"one")
        self.damage(blobs, name, damaged)
        with pytest.raises(StoreError, match="damaged"):
            blobs.get(name)
