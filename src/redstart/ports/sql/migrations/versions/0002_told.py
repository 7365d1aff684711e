"""Add messages from people to a run, and the process that drives it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("runs", sa.Column("holder", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "told",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("word", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_told"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_told_run_id_runs"),
    )


def downgrade() -> None:
    op.drop_table("told")
    op.drop_column("runs", "holder")
