"""Add patterns, and the vectors of their goals.

In Postgres the vector is a `vector` if the server has the extension (see 0006), else an array of `real`.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ALONE = "tenant = current_setting('redstart.tenant', true)"


class _Spelled(sa.types.UserDefinedType[str]):
    def __init__(self, spelling: str) -> None:
        self.spelling = spelling

    def get_col_spec(self, **_: object) -> str:
        return self.spelling


def upgrade() -> None:
    op.create_table(
        "patterns",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("repo", sa.Text, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("family", NAME, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        *(sa.Column(name, NAME, nullable=False) for name in ("state", "embedded")),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_patterns"),
        sa.UniqueConstraint("tenant", "run_id", "attempt", name="uq_patterns_tenant_run_id_attempt"),
    )
    op.create_index("ix_patterns_tenant_state_embedded", "patterns", ["tenant", "state", "embedded"])
    op.create_table(
        "pattern_vectors",
        *(sa.Column(name, NAME, nullable=False) for name in ("tenant", "pattern_id", "model")),
        sa.Column("embedding", _choose_embedding_type(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "pattern_id", "model", name="pk_pattern_vectors"),
    )
    if _is_postgres():
        op.execute("ALTER TABLE pattern_vectors ALTER COLUMN embedding SET STORAGE EXTERNAL")
        for name in ("patterns", "pattern_vectors"):
            op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY of_tenant ON {name} USING ({_ALONE}) WITH CHECK ({_ALONE})")


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _choose_embedding_type() -> sa.types.TypeEngine[Any]:
    if not _is_postgres():
        return sa.LargeBinary()
    query = sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
    return _Spelled("vector" if op.get_bind().execute(query).scalar() else "real[]")


def downgrade() -> None:
    op.drop_table("pattern_vectors")
    op.drop_table("patterns")
