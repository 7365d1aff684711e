"""Add the tenant to every key, mark child runs, and add blobs in the database and rates that workers share.

The tables are rebuilt and filled from the old ones: SQLite cannot change a key, and one way serves both databases.
In Postgres a connection sees only the rows of its tenant.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
HOME = "home"
OF_RUN = ("steps", "events", "journal", "told")
"""Tables whose rows belong to a run and had no tenant column."""
LEARNED = ("cards", "failures")
TABLES = ("runs", *OF_RUN, *LEARNED, "edits", "blobs", "rates")
_ALONE = "tenant = current_setting('redstart.tenant', true)"


def upgrade() -> None:
    for name in ("ix_runs_folder_created", "ix_cards_tenant_key", "ix_cards_tenant_family", "ix_edits_tenant_model"):
        op.drop_index(name)
    for name in ("runs", *OF_RUN, *LEARNED, "edits"):
        op.rename_table(name, f"old_{name}")
    _rename_constraints()
    _create_runs()
    _create_history_tables()
    _create_memory_tables()
    _create_shared_tables()
    _fill()
    for name in (*OF_RUN, *LEARNED, "edits", "runs"):
        op.drop_table(f"old_{name}")
    op.create_index("ix_runs_tenant_created", "runs", ["tenant", "created"])
    op.create_index("ix_runs_tenant_errand_created", "runs", ["tenant", "errand", "created"])
    op.create_index("ix_runs_tenant_folder_errand_created", "runs", ["tenant", "folder", "errand", "created"])
    op.create_index("ix_cards_tenant_key", "cards", ["tenant", "key"])
    op.create_index("ix_cards_tenant_family", "cards", ["tenant", "family"])
    op.create_index("ix_edits_tenant_model", "edits", ["tenant", "model"])
    if _is_postgres():
        for name in TABLES:
            op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY of_tenant ON {name} USING ({_ALONE}) WITH CHECK ({_ALONE})")


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _rename_constraints() -> None:
    """Rename old constraints. In Postgres the constraints of a renamed table keep names that the new tables need."""
    if _is_postgres():
        for name in ("runs", *OF_RUN, *LEARNED, "edits"):
            for kind in ("fk", "uq", "pk"):
                for constraint in _list_constraints(f"old_{name}", kind):
                    op.execute(f'ALTER TABLE old_{name} RENAME CONSTRAINT "{constraint}" TO "old_{constraint}"')


def _list_constraints(table: str, kind: str) -> list[str]:
    query = sa.text("SELECT conname FROM pg_constraint WHERE conrelid = CAST(:name AS regclass) AND conname LIKE :kind")
    return list(op.get_bind().execute(query, {"name": table, "kind": f"{kind}\\_%"}).scalars())


def _create_text_columns(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _create_name_columns(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, NAME, nullable=False) for name in names]


def _create_integer_columns(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer, nullable=False, autoincrement=False) for name in names]


def _create_time_columns(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Double, nullable=False) for name in names]


def _create_runs() -> None:
    op.create_table(
        "runs",
        *_create_name_columns("tenant", "id"),
        *_create_text_columns("mode", "status", "result", "goal", "repo"),
        *_create_name_columns("folder"),
        *_create_text_columns("parent"),
        *_create_integer_columns("fence", "version"),
        *_create_text_columns("control", "state", "first_state"),
        *_create_time_columns("created", "updated"),
        sa.Column("holder", sa.Text, nullable=False, server_default=""),
        sa.Column("errand", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_runs"),
    )


def _create_history_tables() -> None:
    _create_run_table(
        "steps",
        ("version",),
        *_create_integer_columns("version", "attempt"),
        *_create_text_columns("step", "artifact", "state"),
    )
    _create_run_table("events", ("seq",), *_create_integer_columns("seq"), *_create_text_columns("body"))
    _create_run_table(
        "journal",
        ("attempt", "step", "ordinal"),
        *_create_integer_columns("attempt"),
        *_create_name_columns("step"),
        *_create_integer_columns("ordinal"),
        *_create_text_columns("kind", "request_hash", "request", "result", "digest"),
        *_create_integer_columns("position"),
        sa.UniqueConstraint("tenant", "run_id", "position", name="uq_journal_tenant_run_id_position"),
    )
    _create_run_table(
        "told",
        ("number",),
        *_create_integer_columns("number"),
        *_create_text_columns("word", "text"),
        *_create_integer_columns("version"),
        *_create_time_columns("time"),
    )


def _create_run_table(table: str, key: tuple[str, ...], *items: sa.schema.SchemaItem) -> None:
    op.create_table(
        table,
        sa.Column("tenant", NAME, nullable=False, server_default=HOME),
        *_create_name_columns("run_id"),
        *items,
        sa.PrimaryKeyConstraint("tenant", "run_id", *key, name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["tenant", "run_id"], ["runs.tenant", "runs.id"], name=f"fk_{table}_run_id_runs"),
    )


def _create_memory_tables() -> None:
    for table in LEARNED:
        op.create_table(
            table,
            *_create_name_columns("tenant", "id"),
            *_create_text_columns("repo"),
            *_create_name_columns("run_id"),
            *_create_integer_columns("attempt"),
            *_create_name_columns("key", "family"),
            *_create_text_columns("body"),
            *_create_time_columns("created"),
            sa.PrimaryKeyConstraint("tenant", "id", name=f"pk_{table}"),
            sa.UniqueConstraint("tenant", "run_id", "attempt", name=f"uq_{table}_tenant_run_id_attempt"),
        )
    op.create_table(
        "edits",
        *_create_name_columns("tenant", "run_id"),
        *_create_integer_columns("attempt", "number"),
        *_create_name_columns("model"),
        *_create_text_columns("kind", "rung"),
        sa.PrimaryKeyConstraint("tenant", "run_id", "attempt", "number", name="pk_edits"),
    )


def _create_shared_tables() -> None:
    op.create_table(
        "blobs",
        *_create_name_columns("tenant", "name"),
        sa.Column("data", sa.LargeBinary, nullable=False),
        *_create_time_columns("put"),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_blobs"),
    )
    op.create_table(
        "rates",
        *_create_name_columns("tenant", "name"),
        *_create_time_columns("level", "at"),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_rates"),
    )


def _fill() -> None:
    """Copy the old rows. A row that belongs to a run gets that run's tenant."""
    columns = {name: ", ".join(_list_columns(f"old_{name}")) for name in ("runs", *OF_RUN, *LEARNED, "edits")}
    for name in ("runs", *LEARNED, "edits"):
        op.execute(f"INSERT INTO {name} ({columns[name]}) SELECT {columns[name]} FROM old_{name}")  # noqa: S608
    op.execute("UPDATE runs SET errand = 1 WHERE id LIKE '%.%'")
    for name in OF_RUN:
        owned = ", ".join(f"o.{column}" for column in _list_columns(f"old_{name}"))
        op.execute(
            f"INSERT INTO {name} (tenant, {columns[name]}) "  # noqa: S608
            f"SELECT r.tenant, {owned} FROM old_{name} AS o JOIN old_runs AS r ON r.id = o.run_id"
        )


def _list_columns(table: str) -> list[str]:
    return [column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)]


def downgrade() -> None:
    raise NotImplementedError("two tenants may have runs with the same name, so this migration cannot be undone")
