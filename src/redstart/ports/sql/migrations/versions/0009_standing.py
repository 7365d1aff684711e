"""Add the state of a run that nobody drives, the lease of its driver, and the options that the user chose."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_TEXTS = ("stopped", "stop_reason", "options")


def upgrade() -> None:
    # The defaults serve older programs, which know none of them.
    op.add_column("runs", sa.Column("beat", sa.Double, nullable=False, server_default="0"))
    for name in _TEXTS:
        op.add_column("runs", sa.Column(name, sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    for name in ("beat", *_TEXTS):
        op.drop_column("runs", name)
