"""The contract of every blob store. Subclass it as `Test...` with the fixture `blobs`, and define `damage`."""

from __future__ import annotations

import hashlib
import time

import pytest

from redstart.core.errors import BlobMissing, StoreError
from redstart.ports.store.port.blobs import Blobs, SweptBlobs


class BlobsContract:
    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        """Replace the stored bytes of `name` by other bytes."""
        raise NotImplementedError

    @pytest.mark.parametrize("data", [b"", b"one", bytes(range(256)) * 4096], ids=["empty", "short", "long"])
    def test_stored_blob_can_be_read_back(self, blobs: Blobs, data: bytes) -> None:
        name = blobs.put(data)
        assert name == hashlib.sha256(data).hexdigest()
        assert blobs.get(name) == data

    def test_storing_a_blob_again_returns_the_same_name(self, blobs: Blobs) -> None:
        other = blobs.put(b"other")
        assert blobs.put(b"one") == blobs.put(b"one") != other
        assert blobs.get(blobs.put(b"one")) == b"one"
        assert blobs.get(other) == b"other"

    def test_unknown_blob_is_reported_missing(self, blobs: Blobs) -> None:
        blobs.put(b"one")
        with pytest.raises(BlobMissing):
            blobs.get(hashlib.sha256(b"two").hexdigest())

    @pytest.mark.parametrize("name", ["", "ab", "../" * 20 + "etc/passwd", "/etc/passwd", "Z" * 64, "a" * 64 + "\n"])
    def test_invalid_blob_name_is_rejected(self, blobs: Blobs, name: str) -> None:
        with pytest.raises(StoreError):
            blobs.get(name)

    @pytest.mark.parametrize("damaged", [b"", b"on", b"two", b"one more"])
    def test_damaged_blob_is_detected(self, blobs: Blobs, damaged: bytes) -> None:
        name = blobs.put(b"one")
        self.damage(blobs, name, damaged)
        with pytest.raises(StoreError, match="damaged"):
            blobs.get(name)

    def test_truncated_blob_is_rewritten_when_stored_again(self, blobs: Blobs) -> None:
        name = blobs.put(b"one")
        self.damage(blobs, name, b"")
        assert blobs.put(b"one") == name
        assert blobs.get(name) == b"one"


class SweptBlobsContract:
    """The contract of blob stores that can remove blobs. Define `age`, which changes the put time of a blob."""

    def set_put_time(self, blobs: SweptBlobs, name: str, put: float) -> None:
        raise NotImplementedError

    def test_blobs_are_listed_with_size_and_storage_time(self, blobs: SweptBlobs) -> None:
        names = {blobs.put(data): len(data) for data in (b"", b"one", b"three")}
        assert {item.name: item.size for item in blobs.list_blobs()} == names
        assert all(abs(item.put_at - time.time()) < 60 for item in blobs.list_blobs())

    def test_dropping_old_blobs_keeps_the_rest(self, blobs: SweptBlobs) -> None:
        names = [blobs.put(str(number).encode()) for number in range(250)]
        stays = blobs.put(b"stays")
        for name in (names[7], stays):
            self.set_put_time(blobs, name, 1000.0)
        blobs.drop([*names, "not there"], time.time() - 600)
        assert {item.name for item in blobs.list_blobs()} == {*names, stays} - {names[7]}, "only that is old enough"
        blobs.drop(names, time.time() + 600)
        assert [item.name for item in blobs.list_blobs()] == [stays]
        with pytest.raises(StoreError, match="missing"):
            blobs.get(names[0])

    def test_storing_a_blob_again_renews_its_age(self, blobs: SweptBlobs) -> None:
        name = blobs.put(b"one")
        self.set_put_time(blobs, name, 1000.0)
        assert [item.put_at for item in blobs.list_blobs()] == [1000.0]
        assert blobs.put(b"one") == name
        blobs.drop([name], time.time() - 600)
        assert blobs.get(name) == b"one"
