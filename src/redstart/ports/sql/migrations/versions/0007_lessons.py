"""Add lessons, and their outcomes in the runs that they applied to.

A lesson that was approved for everyone can be read by every tenant, but changed only by its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ALONE = "tenant = current_setting('redstart.tenant', true)"


def upgrade() -> None:
    op.create_table(
        "lessons",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("repo", sa.Text, nullable=False),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("family", NAME, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        *(sa.Column(name, NAME, nullable=False) for name in ("scope", "status", "same_as")),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_lessons"),
        sa.UniqueConstraint("tenant", "run_id", "attempt", name="uq_lessons_tenant_run_id_attempt"),
    )
    op.create_index("ix_lessons_tenant_same_as", "lessons", ["tenant", "same_as"])
    op.create_table(
        "uses",
        *(sa.Column(name, NAME, nullable=False) for name in ("tenant", "lesson", "run_id")),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("probability", sa.Double, nullable=False),
        sa.Column("shown", sa.Integer, nullable=False),
        sa.Column("green", sa.Integer, nullable=True),
        sa.Column("cost", sa.Double, nullable=True),
        sa.Column("created", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "lesson", "run_id", name="pk_uses"),
    )
    op.create_index("ix_uses_tenant_run_id_attempt", "uses", ["tenant", "run_id", "attempt"])
    if op.get_bind().dialect.name == "postgresql":
        for name in ("lessons", "uses"):
            op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY of_tenant ON {name} USING ({_ALONE}) WITH CHECK ({_ALONE})")
        op.execute("CREATE POLICY of_everyone ON lessons FOR SELECT USING (scope = 'global')")


def downgrade() -> None:
    op.drop_table("uses")
    op.drop_table("lessons")
