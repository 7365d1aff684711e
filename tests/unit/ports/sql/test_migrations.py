from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from redstart.core.errors import StoreError
from redstart.ports.sql.engine import Database
from redstart.ports.sql.migrations import create_config
from redstart.ports.sql.schema import HEAD, metadata


def test_head_is_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(create_config()).get_heads() == [HEAD]


def test_migrations_produce_the_current_schema(where: Path | str) -> None:
    with Database.open(where) as database, database.connect_for_reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        inspector = inspect(connection)
        for table in metadata.tables.values():
            assert inspector.get_pk_constraint(table.name)["name"] == table.primary_key.name
            assert {key["name"] for key in inspector.get_foreign_keys(table.name)} == {
                key.name for key in table.foreign_key_constraints
            }


def test_failed_migration_leaves_the_database_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"

    def raise_error(*_: object) -> None:
        raise StoreError("half way")

    with monkeypatch.context() as patch:
        patch.setattr("alembic.op.create_index", raise_error)
        with pytest.raises(StoreError, match="half way"):
            Database.open(path)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()
    Database.open(path).close()


def test_database_of_a_newer_version_is_rejected_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Database.open(path) as database, database.connect_for_writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="another version") as caught:
        Database.open(path)
    assert caught.value.remedy
    assert not list(tmp_path.glob("store.db-*")), "the opened database is closed again"
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"
    engine.dispose()
