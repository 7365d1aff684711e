"""The tables. JSON is kept as text and time as seconds since the epoch, so that every database keeps them alike."""

from __future__ import annotations

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, MetaData, Table, Text, UniqueConstraint

HEAD = "0003"
"""The newest revision in `migrations/versions`. A database that is at it is opened without importing Alembic."""

GOAL_SHOWN = 200
"""How much of a goal the list of runs carries."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("goal", Text, nullable=False),
    Column("repo", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("control", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("first_state", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("holder", Text, nullable=False, server_default=""),
    Index(None, "folder", "created"),
)

steps = Table(
    "steps",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("step", Text, nullable=False),
    Column("artifact", Text, nullable=False),
    Column("state", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("body", Text, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("position", Integer, nullable=False),
    UniqueConstraint("run_id", "position"),
)


told = Table(
    "told",
    metadata,
    Column("run_id", Text, ForeignKey("runs.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("word", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("time", Double, nullable=False),
)


# What was learned outlives the run it was learned in: no foreign key to `runs`.
def _learned(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("id", Text, primary_key=True),
        Column("tenant", Text, nullable=False),
        Column("repo", Text, nullable=False),
        Column("run_id", Text, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("key", Text, nullable=False),
        Column("family", Text, nullable=False),
        Column("body", Text, nullable=False),
        Column("created", Double, nullable=False),
        UniqueConstraint("run_id", "attempt"),
    )


cards = _learned("cards")
Index(None, cards.c.tenant, cards.c.key)
Index(None, cards.c.tenant, cards.c.family)

failures = _learned("failures")

edits = Table(
    "edits",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("rung", Text, nullable=False),
    Index(None, "tenant", "model"),
)
"""What became of each edit of an answer, from 1; `rung` is empty where it did not fit."""
