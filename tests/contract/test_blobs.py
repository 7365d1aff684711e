from __future__ import annotations

import os
from pathlib import Path

import pytest

from redstart.core.errors import StoreError
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.ports.store.port import Blobs
from redstart.testing.contracts.blobs import BlobsContract
from redstart.testing.store import MemoryBlobs


class TestMemoryBlobs(BlobsContract):
    @pytest.fixture
    def blobs(self) -> MemoryBlobs:
        return MemoryBlobs()

    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        assert isinstance(blobs, MemoryBlobs)
        blobs.kept[name] = data


class TestDirectoryBlobs(BlobsContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "made" / "blobs"

    @pytest.fixture
    def blobs(self, folder: Path) -> DirectoryBlobs:
        self.folder = folder
        return DirectoryBlobs(folder)

    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        (self.folder / name[:2] / name).write_bytes(data)

    def test_one_file_for_each_and_nothing_else(self, blobs: DirectoryBlobs, folder: Path) -> None:
        names = {blobs.put(data) for data in (b"one", b"two", b"one")}
        files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert files == {f"{name[:2]}/{name}" for name in names}

    def test_what_is_there_is_not_written_again(self, blobs: DirectoryBlobs, folder: Path) -> None:
        name = blobs.put(b"one")
        path = folder / name[:2] / name
        os.utime(path, (1, 1))
        before = path.stat()
        assert blobs.put(b"one") == name
        assert path.stat().st_ino == before.st_ino
        assert path.stat().st_mtime > 1, "it counts as new, or a prune could take it"

    def test_a_file_that_was_cut_short_is_written_again(self, blobs: DirectoryBlobs) -> None:
        name = blobs.put(b"one")
        self.damage(blobs, name, b"")
        assert blobs.put(b"one") == name
        assert blobs.get(name) == b"one"

    def test_no_file_outside_the_folder_is_read(self, blobs: DirectoryBlobs, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder.parent / "secret").write_bytes(b"secret")
        with pytest.raises(StoreError, match="not the name of a blob"):
            blobs.get("../../blobs/../secret")

    def test_another_process_may_read_it(self, blobs: DirectoryBlobs, folder: Path) -> None:
        assert DirectoryBlobs(folder).get(blobs.put(b"one")) == b"one"

    def test_a_folder_that_cannot_be_made_is_a_store_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(StoreError, match="cannot be written"):
            DirectoryBlobs(tmp_path / "file" / "blobs").put(b"one")

    def test_a_write_that_fails_leaves_no_file(
        self, blobs: DirectoryBlobs, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_handle: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", full)
            with pytest.raises(StoreError, match="No space left"):
                blobs.put(b"one")
        assert [path for path in folder.rglob("*") if path.is_file()] == []
