from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from redstart.core.errors import StoreError
from redstart.ports.sql.engine import Database
from redstart.ports.sql.migrations import config
from redstart.ports.sql.schema import HEAD, metadata


def test_head_is_the_newest_revision() -> None:
    assert ScriptDirectory.from_config(config()).get_heads() == [HEAD]


def test_migrations_lead_to_the_schema(where: Path | str) -> None:
    with Database.open(where) as database, database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        made = inspect(connection)
        for table in metadata.tables.values():
            assert made.get_pk_constraint(table.name)["name"] == table.primary_key.name
            assert {key["name"] for key in made.get_foreign_keys(table.name)} == {
                key.name for key in table.foreign_key_constraints
            }


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"

    def fails(*_: object) -> None:
        raise StoreError("half way")

    with monkeypatch.context() as patch:
        patch.setattr("alembic.op.create_index", fails)
        with pytest.raises(StoreError, match="half way"):
            Database.open(path)
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    engine.dispose()
    Database.open(path).close()


def test_a_database_of_a_newer_redstart_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Database.open(path) as database, database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="another version") as raised:
        Database.open(path)
    assert raised.value.remedy
    assert not list(tmp_path.glob("store.db-*")), "the opened database is closed again"
    engine = create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"
    engine.dispose()
