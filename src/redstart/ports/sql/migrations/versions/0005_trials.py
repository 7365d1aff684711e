"""Add evaluations: their plans, the run of each trial, and its outcome."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_ALONE = "tenant = current_setting('redstart.tenant', true)"


def upgrade() -> None:
    op.create_table(
        "evaluations",
        sa.Column("tenant", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_evaluations"),
    )
    op.create_table(
        "trials",
        *(sa.Column(name, NAME, nullable=False) for name in ("tenant", "evaluation", "task")),
        *(sa.Column(name, sa.Integer, nullable=False, autoincrement=False) for name in ("seed", "run")),
        sa.Column("run_id", NAME, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("final", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "evaluation", "task", "seed", "run", name="pk_trials"),
        sa.ForeignKeyConstraint(
            ["tenant", "evaluation"],
            ["evaluations.tenant", "evaluations.name"],
            name="fk_trials_evaluation_evaluations",
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        for name in ("evaluations", "trials"):
            op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
            op.execute(f"CREATE POLICY of_tenant ON {name} USING ({_ALONE}) WITH CHECK ({_ALONE})")


def downgrade() -> None:
    op.drop_table("trials")
    op.drop_table("evaluations")
