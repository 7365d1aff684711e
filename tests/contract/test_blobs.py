from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import update

from redstart.core.errors import StoreError
from redstart.ports.sql.blobs import SqlBlobs
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import blobs as table
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.ports.store.port.blobs import Blobs, SweptBlobs
from redstart.testing.contracts.blobs import BlobsContract, SweptBlobsContract
from support.store import MemoryBlobs


class TestMemoryBlobs(BlobsContract):
    @pytest.fixture
    def blobs(self) -> MemoryBlobs:
        return MemoryBlobs()

    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        assert isinstance(blobs, MemoryBlobs)
        blobs.kept[name] = data


class TestSqlBlobs(BlobsContract, SweptBlobsContract):
    @pytest.fixture
    def blobs(self, database: Database) -> SqlBlobs:
        self.database = database
        return SqlBlobs(database)

    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        self._change(name, {"data": data})

    def set_put_time(self, blobs: SweptBlobs, name: str, put: float) -> None:
        self._change(name, {"put": put})

    def _change(self, name: str, new: dict[str, object]) -> None:
        with self.database.connect_for_writing() as connection:
            connection.execute(update(table).where(table.c.name == name).values(new))

    def test_blobs_of_another_tenant_are_missing(self, blobs: SqlBlobs) -> None:
        name, other_blobs = blobs.put(b"one"), SqlBlobs(self.database.for_tenant("other"))
        with pytest.raises(StoreError, match="missing"):
            other_blobs.get(name)
        other_blobs.drop([name], time.time() + 60)
        assert list(other_blobs.list_blobs()) == []
        assert blobs.get(name) == b"one"
        assert other_blobs.put(b"one") == name
        assert other_blobs.get(name) == b"one"


class TestDirectoryBlobs(BlobsContract, SweptBlobsContract):
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "made" / "blobs"

    @pytest.fixture
    def blobs(self, folder: Path) -> DirectoryBlobs:
        self.folder = folder
        return DirectoryBlobs(folder)

    def damage(self, blobs: Blobs, name: str, data: bytes) -> None:
        (self.folder / name[:2] / name).write_bytes(data)

    def set_put_time(self, blobs: SweptBlobs, name: str, put: float) -> None:
        os.utime(self.folder / name[:2] / name, (put, put))

    def test_blob_stored_again_survives_a_concurrent_drop(
        self, blobs: DirectoryBlobs, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = blobs.put(b"one")
        self.set_put_time(blobs, name, 1000.0)
        reached, goes_on, touch = threading.Event(), threading.Event(), os.utime

        def touch_slowly(path: Path) -> None:
            reached.set()
            goes_on.wait(10)
            touch(path)

        monkeypatch.setattr("os.utime", touch_slowly)
        puts = threading.Thread(target=blobs.put, args=[b"one"])
        drops = threading.Thread(target=blobs.drop, args=[[name], time.time() - 600])
        puts.start()
        assert reached.wait(10)
        drops.start()
        drops.join(0.3)  # it has to wait until the other thread is done
        goes_on.set()
        puts.join()
        drops.join()
        assert blobs.get(name) == b"one"

    def test_each_blob_is_exactly_one_file(self, blobs: DirectoryBlobs, folder: Path) -> None:
        names = {blobs.put(data) for data in (b"one", b"two", b"one")}
        files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert files == {f"{name[:2]}/{name}" for name in names}

    def test_existing_blob_is_not_rewritten_but_counts_as_new(self, blobs: DirectoryBlobs, folder: Path) -> None:
        name = blobs.put(b"one")
        path = folder / name[:2] / name
        os.utime(path, (1, 1))
        before = path.stat()
        assert blobs.put(b"one") == name
        assert path.stat().st_ino == before.st_ino
        assert path.stat().st_mtime > 1, "it counts as new, or a prune could remove it"

    def test_no_file_outside_the_directory_is_read(self, blobs: DirectoryBlobs, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder.parent / "secret").write_bytes(b"secret")
        with pytest.raises(StoreError, match="not the name of a blob"):
            blobs.get("../../blobs/../secret")

    def test_another_process_can_read_the_blob(self, blobs: DirectoryBlobs, folder: Path) -> None:
        assert DirectoryBlobs(folder).get(blobs.put(b"one")) == b"one"

    def test_directory_that_cannot_be_created_raises_a_store_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(StoreError, match="cannot be written"):
            DirectoryBlobs(tmp_path / "file" / "blobs").put(b"one")

    def test_failed_write_leaves_no_file(
        self, blobs: DirectoryBlobs, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def raise_disk_full(_handle: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", raise_disk_full)
            with pytest.raises(StoreError, match="No space left"):
                blobs.put(b"one")
        assert [path for path in folder.rglob("*") if path.is_file()] == []
