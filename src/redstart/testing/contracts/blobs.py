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
        with pytest.raises(BlobMissing):
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

    def test_one_that_was_cut_short_is_put_again(self, blobs: Blobs) -> None:
        name = blobs.put(b"one")
        self.damage(blobs, name, b"")
        assert blobs.put(b"one") == name
        assert blobs.get(name) == b"one"


class SweptBlobsContract:
    """The contract of blob stores that can remove blobs. Define `age`, which changes the put time of a blob."""

    def age(self, blobs: SweptBlobs, name: str, put: float) -> None:
        raise NotImplementedError

    def test_every_blob_is_told_with_its_size_and_when_it_was_put(self, blobs: SweptBlobs) -> None:
        names = {blobs.put(data): len(data) for data in (b"", b"one", b"three")}
        assert {item.name: item.size for item in blobs.kept()} == names
        assert all(abs(item.put - time.time()) < 60 for item in blobs.kept())

    def test_what_is_dropped_is_gone_and_the_rest_stays(self, blobs: SweptBlobs) -> None:
        names = [blobs.put(str(number).encode()) for number in range(250)]
        stays = blobs.put(b"stays")
        for name in (names[7], stays):
            self.age(blobs, name, 1000.0)
        blobs.drop([*names, "not there"], time.time() - 600)
        assert {item.name for item in blobs.kept()} == {*names, stays} - {names[7]}, "only that is old enough"
        blobs.drop(names, time.time() + 600)
        assert [item.name for item in blobs.kept()] == [stays]
        with pytest.raises(StoreError, match="missing"):
            blobs.get(names[0])

    def test_one_that_is_put_again_is_new(self, blobs: SweptBlobs) -> None:
        name = blobs.put(b"one")
        self.age(blobs, name, 1000.0)
        assert [item.put for item in blobs.kept()] == [1000.0]
        assert blobs.put(b"one") == name
        blobs.drop([name], time.time() - 600)
        assert blobs.get(name) == b"one"
