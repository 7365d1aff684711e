"""Add runs, their steps, events and journal, and what they learned."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _create_runs()
    _create_steps_and_events()
    _create_journal()
    _create_memory_table("cards")
    op.create_index("ix_cards_tenant_key", "cards", ["tenant", "key"])
    op.create_index("ix_cards_tenant_family", "cards", ["tenant", "family"])
    _create_memory_table("failures")


def downgrade() -> None:
    for table in ("failures", "cards", "journal", "events", "steps", "runs"):
        op.drop_table(table)


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
        sa.Column("goal", sa.Text, nullable=False),
        sa.Column("repo", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("fence", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("control", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("first_state", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index("ix_runs_folder_created", "runs", ["folder", "created"])


def _create_steps_and_events() -> None:
    op.create_table(
        "steps",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("artifact", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "version", name="pk_steps"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_steps_run_id_runs"),
    )
    op.create_table(
        "events",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_events"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_events_run_id_runs"),
    )


def _create_journal() -> None:
    op.create_table(
        "journal",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("request_hash", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "attempt", "step", "ordinal", name="pk_journal"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_journal_run_id_runs"),
        sa.UniqueConstraint("run_id", "position", name="uq_journal_run_id_position"),
    )


def _create_memory_table(table: str) -> None:
    op.create_table(
        table,
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("repo", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("family", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.UniqueConstraint("run_id", "attempt", name=f"uq_{table}_run_id_attempt"),
    )
