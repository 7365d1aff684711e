from __future__ import annotations

import fcntl
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, text

from redstart.core.errors import StoreError
from redstart.ports.sql import connect, migrations
from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import HEAD, events


def test_open_creates_the_directory_and_a_durable_database(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down"
    with Database.open(folder / "store.db") as database, database.connect_for_reading() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}
    assert folder.stat().st_mode & 0o077 == 0, "stored runs are private to the user"


def is_locked(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def test_database_is_checked_and_migrated_under_one_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock_states: list[bool] = []

    def record_lock(original: Callable[[Connection], object]) -> Callable[[Connection], object]:
        def watch(connection: Connection) -> object:
            lock_states.append(is_locked(tmp_path))
            return original(connection)

        return watch

    monkeypatch.setattr(connect, "read_revision", record_lock(connect.read_revision))
    monkeypatch.setattr(migrations, "upgrade", record_lock(migrations.upgrade))
    with Database.open(tmp_path / "store.db"):
        assert lock_states == [True, True]
        assert not is_locked(tmp_path), "an open database blocks nobody"


def test_database_path_may_contain_any_character(tmp_path: Path) -> None:
    path = tmp_path / "50% of a #folder? yes" / "store.db"
    for _ in range(2):
        Database.open(path).close()
    assert path.is_file()


def test_close_leaves_nothing_open(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "store.db")
    with database.connect_for_reading(), database.connect_for_reading():
        pass
    database.close()
    database.close()
    del database
    gc.collect()
    assert not list(tmp_path.glob("store.db-*")), "the last connection removes the write-ahead log"


def write_and_fail(database: Database) -> None:
    with database.connect_for_writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'x'"))
        raise KeyError


def test_exception_rolls_back_the_whole_transaction(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as database:
        with pytest.raises(KeyError):
            write_and_fail(database)
        with database.connect_for_reading() as connection:
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == HEAD


def test_event_without_a_run_is_rejected(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as database:
        with pytest.raises(StoreError, match="FOREIGN KEY"), database.connect_for_writing() as connection:
            connection.execute(insert(events), {"run_id": "nobody", "seq": 0, "body": "{}"})
        with database.connect_for_reading() as connection:
            assert connection.execute(select(events)).all() == []


def test_writer_does_not_block_a_reader(tmp_path: Path) -> None:
    with Database.open(tmp_path / "store.db") as database, database.connect_for_writing() as writer:
        writer.execute(text("UPDATE alembic_version SET version_num = 'x'"))
        with database.connect_for_reading() as reader:
            assert reader.execute(text("SELECT version_num FROM alembic_version")).scalar() == HEAD


def test_second_writer_gets_an_error_after_the_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redstart.ports.sql.sqlite.BUSY_SECONDS", 0.01)
    with (
        Database.open(tmp_path / "store.db") as database,
        database.connect_for_writing(),
        pytest.raises(StoreError, match="locked"),
        database.connect_for_writing(),
    ):
        pass


def test_file_that_is_not_a_database_raises_a_store_error(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_text("a letter, by no means a database " * 100)
    with pytest.raises(StoreError, match="not a database"):
        Database.open(path)


def test_directory_that_cannot_be_created_raises_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        Database.open(tmp_path / "file" / "store.db")
    assert caught.value.remedy


@pytest.mark.slow
def test_alembic_is_not_imported_for_an_up_to_date_database(tmp_path: Path) -> None:
    Database.open(tmp_path / "store.db").close()
    code = """
import sys
from pathlib import Path
from redstart.ports.sql.engine import Database
Database.open(Path(sys.argv[1])).close()
assert "alembic" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code, tmp_path / "store.db"], check=True)
