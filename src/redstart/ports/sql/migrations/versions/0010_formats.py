"""Add the format of each journal record, and the version of Redstart that recorded it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_TEXTS = ("format", "recorded_by")


def upgrade() -> None:
    # The defaults serve older programs, which know neither.
    for name in _TEXTS:
        op.add_column("journal", sa.Column(name, sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    for name in _TEXTS:
        op.drop_column("journal", name)
