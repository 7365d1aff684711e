"""Add which forms of edits fitted, by model."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "edits",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("rung", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "attempt", "number", name="pk_edits"),
    )
    op.create_index("ix_edits_tenant_model", "edits", ["tenant", "model"])


def downgrade() -> None:
    op.drop_table("edits")
