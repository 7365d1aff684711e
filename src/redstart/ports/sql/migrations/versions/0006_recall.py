"""Add quarantine of cards, the vectors of their texts, and the edges of the graph.

In Postgres the vector of a card is a `vector` if the server has pgvector (`CREATE EXTENSION vector`, which needs a
superuser unless it is trusted), else an array of `real`, whose search is as exact but slower.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import DBAPIError

revision = "0006"
down_revision = "0005"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ALONE = "tenant = current_setting('redstart.tenant', true)"


class _Spelled(sa.types.UserDefinedType[str]):
    def __init__(self, spelling: str) -> None:
        self.spelling = spelling

    def get_col_spec(self, **_: object) -> str:
        return self.spelling


def upgrade() -> None:
    op.add_column("cards", sa.Column("state", NAME, nullable=False, server_default="shown"))
    op.add_column("cards", sa.Column("embedded", NAME, nullable=False, server_default=""))
    op.create_index("ix_cards_tenant_state_embedded", "cards", ["tenant", "state", "embedded"])
    op.create_table(
        "vectors",
        *(sa.Column(name, NAME, nullable=False) for name in ("tenant", "card_id", "model", "repo")),
        sa.Column("embedding", _choose_embedding_type(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "card_id", "model", name="pk_vectors"),
    )
    op.create_index("ix_vectors_tenant_model_repo", "vectors", ["tenant", "model", "repo"])
    op.create_table(
        "edges",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        *(sa.Column(name, NAME, nullable=False) for name in ("kind", "source", "target", "repo")),
        sa.Column("created", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "run_id", "attempt", "kind", "source", "target", name="pk_edges"),
    )
    op.create_index("ix_edges_tenant_kind_target", "edges", ["tenant", "kind", "target"])
    if _is_postgres():
        # Scanned data should not be compressed: a kilobyte of numbers hardly gets smaller.
        op.execute("ALTER TABLE vectors ALTER COLUMN embedding SET STORAGE EXTERNAL")
        for name in ("vectors", "edges"):
            op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY of_tenant ON {name} USING ({_ALONE}) WITH CHECK ({_ALONE})")


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _choose_embedding_type() -> sa.types.TypeEngine[Any]:
    if not _is_postgres():
        return sa.LargeBinary()
    connection = op.get_bind()
    query = sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
    if not connection.execute(query).scalar():
        _try_to_make_it(connection)
    return _Spelled("vector" if connection.execute(query).scalar() else "real[]")


def _try_to_make_it(connection: sa.Connection) -> None:
    query = sa.text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
    if connection.execute(query).scalar():
        try:
            with connection.begin_nested():
                connection.execute(sa.text("CREATE EXTENSION vector"))
        except DBAPIError:
            return  # creating it needs more privileges


def downgrade() -> None:
    op.drop_table("edges")
    op.drop_table("vectors")
    op.drop_index("ix_cards_tenant_state_embedded", "cards")
    op.drop_column("cards", "embedded")
    op.drop_column("cards", "state")
