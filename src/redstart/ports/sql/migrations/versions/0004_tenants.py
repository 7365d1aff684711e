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
    _free_the_names()
    _runs()
    _of_run()
    _learned()
    _new()
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


def _free_the_names() -> None:
    """Rename old constraints. In Postgres the constraints of a renamed table keep names that the new tables need."""
    if _is_postgres():
        for name in ("runs", *OF_RUN, *LEARNED, "edits"):
            for kind in ("fk", "uq", "pk"):
                for found in _constraints(f"old_{name}", kind):
                    op.execute(f'ALTER TABLE old_{name} RENAME CONSTRAINT "{found}" TO "old_{found}"')


def _constraints(table: str, kind: str) -> list[str]:
    named = sa.text("SELECT conname FROM pg_constraint WHERE conrelid = CAST(:name AS regclass) AND conname LIKE :kind")
    return list(op.get_bind().execute(named, {"name": table, "kind": f"{kind}\\_%"}).scalars())


def _text(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=False) for name in names]


def _names(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, NAME, nullable=False) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer, nullable=False, autoincrement=False) for name in names]


def _moments(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Double, nullable=False) for name in names]


def _runs() -> None:
    op.create_table(
        "runs",
        *_names("tenant", "id"),
        *_text("mode", "status", "result", "goal", "repo"),
        *_names("folder"),
        *_text("parent"),
        *_numbers("fence", "version"),
        *_text("control", "state", "first_state"),
        *_moments("created", "updated"),
        sa.Column("holder", sa.Text, nullable=False, server_default=""),
        sa.Column("errand", sa.Integer, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_runs"),
    )


def _of_run() -> None:
    _owned("steps", ("version",), *_numbers("version", "attempt"), *_text("step", "artifact", "state"))
    _owned("events", ("seq",), *_numbers("seq"), *_text("body"))
    _owned(
        "journal",
        ("attempt", "step", "ordinal"),
        *_numbers("attempt"),
        *_names("step"),
        *_numbers("ordinal"),
        *_text("kind", "request_hash", "request", "result", "digest"),
        *_numbers("position"),
        sa.UniqueConstraint("tenant", "run_id", "position", name="uq_journal_tenant_run_id_position"),
    )
    _owned("told", ("number",), *_numbers("number"), *_text("word", "text"), *_numbers("version"), *_moments("time"))


def _owned(table: str, key: tuple[str, ...], *rest: sa.schema.SchemaItem) -> None:
    op.create_table(
        table,
        sa.Column("tenant", NAME, nullable=False, server_default=HOME),
        *_names("run_id"),
        *rest,
        sa.PrimaryKeyConstraint("tenant", "run_id", *key, name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["tenant", "run_id"], ["runs.tenant", "runs.id"], name=f"fk_{table}_run_id_runs"),
    )


def _learned() -> None:
    for table in LEARNED:
        op.create_table(
            table,
            *_names("tenant", "id"),
            *_text("repo"),
            *_names("run_id"),
            *_numbers("attempt"),
            *_names("key", "family"),
            *_text("body"),
            *_moments("created"),
            sa.PrimaryKeyConstraint("tenant", "id", name=f"pk_{table}"),
            sa.UniqueConstraint("tenant", "run_id", "attempt", name=f"uq_{table}_tenant_run_id_attempt"),
        )
    op.create_table(
        "edits",
        *_names("tenant", "run_id"),
        *_numbers("attempt", "number"),
        *_names("model"),
        *_text("kind", "rung"),
        sa.PrimaryKeyConstraint("tenant", "run_id", "attempt", "number", name="pk_edits"),
    )


def _new() -> None:
    op.create_table(
        "blobs",
        *_names("tenant", "name"),
        sa.Column("data", sa.LargeBinary, nullable=False),
        *_moments("put"),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_blobs"),
    )
    op.create_table(
        "rates",
        *_names("tenant", "name"),
        *_moments("level", "at"),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_rates"),
    )


def _fill() -> None:
    """Copy the old rows. A row that belongs to a run gets that run's tenant."""
    columns = {name: ", ".join(_columns(f"old_{name}")) for name in ("runs", *OF_RUN, *LEARNED, "edits")}
    for name in ("runs", *LEARNED, "edits"):
        op.execute(f"INSERT INTO {name} ({columns[name]}) SELECT {columns[name]} FROM old_{name}")  # noqa: S608
    op.execute("UPDATE runs SET errand = 1 WHERE id LIKE '%.%'")
    for name in OF_RUN:
        owned = ", ".join(f"o.{column}" for column in _columns(f"old_{name}"))
        op.execute(
            f"INSERT INTO {name} (tenant, {columns[name]}) "  # noqa: S608
            f"SELECT r.tenant, {owned} FROM old_{name} AS o JOIN old_runs AS r ON r.id = o.run_id"
        )


def _columns(table: str) -> list[str]:
    return [column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)]


def downgrade() -> None:
    raise NotImplementedError("two tenants may have runs of one name: there is no way back")
