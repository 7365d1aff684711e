"""The tables. JSON is stored as text and time as seconds since the epoch, so that all databases store them alike.

Every table has a tenant, which is the first part of every key. In Postgres, row-level security shows a connection only
the rows of its tenant. SQLite has no such feature, so each query names the tenant.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import UserDefinedType

HEAD = "0010"
"""The newest revision in `migrations/versions`. A database at this revision is opened without importing Alembic."""

DEFAULT_TENANT = "home"
"""The default tenant."""

MAX_GOAL_LENGTH = 200
"""The most characters of a goal in the list of runs."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_run_id_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

NAME = Text().with_variant(Text(collation="C"), "postgresql")
"""A name that is compared character by character, whatever the database's collation."""


class VectorColumn(UserDefinedType[str]):
    """The column type of pgvector. On servers without that extension, the column is an array of `real`."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "vector"


EMBEDDING = LargeBinary().with_variant(VectorColumn(), "postgresql")
"""In SQLite, the bytes of float32 numbers in native order."""


def _create_tenant_column() -> Column[str]:
    return Column("tenant", NAME, primary_key=True)


def _create_run_columns() -> tuple[Column[str], Column[str], ForeignKeyConstraint]:
    """Return the columns that identify the run of a row. The default serves older programs, which knew one tenant."""
    return (
        Column("tenant", NAME, primary_key=True, server_default=DEFAULT_TENANT),
        Column("run_id", NAME, primary_key=True),
        ForeignKeyConstraint(["tenant", "run_id"], ["runs.tenant", "runs.id"]),
    )


runs = Table(
    "runs",
    metadata,
    _create_tenant_column(),
    Column("id", NAME, primary_key=True),
    Column("mode", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("goal", Text, nullable=False),
    Column("repo", Text, nullable=False),
    Column("folder", NAME, nullable=False),
    Column("parent", Text, nullable=False),
    Column("fence", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("control", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("first_state", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("updated", Double, nullable=False),
    Column("holder", Text, nullable=False, server_default=""),
    Column("errand", Integer, nullable=False, server_default="0"),
    Column("beat", Double, nullable=False, server_default="0"),
    Column("stopped", Text, nullable=False, server_default=""),
    Column("stop_reason", Text, nullable=False, server_default=""),
    Column("options", Text, nullable=False, server_default=""),
    # For the list of runs: only the newest rows are read. The ID is not part of the indexes: a database without table
    # statistics would otherwise use them to find single runs, scanning all runs of a tenant.
    Index(None, "tenant", "created"),
    Index(None, "tenant", "errand", "created"),
    Index(None, "tenant", "folder", "errand", "created"),
)

steps = Table(
    "steps",
    metadata,
    *_create_run_columns(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("step", Text, nullable=False),
    Column("artifact", Text, nullable=False),
    Column("state", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    *_create_run_columns(),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    *_create_run_columns(),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("step", NAME, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("request_hash", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("format", Text, nullable=False, server_default=""),
    Column("recorded_by", Text, nullable=False, server_default=""),
    UniqueConstraint("tenant", "run_id", "position"),
)


person_messages = Table(
    "told",
    metadata,
    *_create_run_columns(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("word", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("time", Double, nullable=False),
)


# Memories outlive the run that created them: no foreign key to `runs`.
def _create_memory_table(name: str, *extra_columns: SchemaItem) -> Table:
    return Table(
        name,
        metadata,
        _create_tenant_column(),
        Column("id", NAME, primary_key=True),
        Column("repo", Text, nullable=False),
        Column("run_id", NAME, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("key", NAME, nullable=False),
        Column("family", NAME, nullable=False),
        Column("body", Text, nullable=False),
        Column("created", Double, nullable=False),
        *extra_columns,
        UniqueConstraint("tenant", "run_id", "attempt"),
    )


# The defaults serve older programs, which know neither column.
cards = _create_memory_table(
    "cards",
    Column("state", NAME, nullable=False, server_default="shown"),
    Column("embedded", NAME, nullable=False, server_default=""),
)
"""`embedded` names the model of the newest row in `vectors`; it is empty if there is none."""
Index(None, cards.c.tenant, cards.c.key)
Index(None, cards.c.tenant, cards.c.family)
Index(None, cards.c.tenant, cards.c.state, cards.c.embedded)

vectors = Table(
    "vectors",
    metadata,
    _create_tenant_column(),
    Column("card_id", NAME, primary_key=True),
    Column("model", NAME, primary_key=True),
    Column("repo", NAME, nullable=False),
    Column("embedding", EMBEDDING, nullable=False),
    Index(None, "tenant", "model", "repo"),
)
"""The vectors of the cards' texts. Computed from the cards, and recomputed for another model."""

edges = Table(
    "edges",
    metadata,
    _create_tenant_column(),
    Column("run_id", NAME, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("kind", NAME, primary_key=True),
    Column("source", NAME, primary_key=True),
    Column("target", NAME, primary_key=True),
    Column("repo", NAME, nullable=False),
    Column("created", Double, nullable=False),
    Index(None, "tenant", "kind", "target"),
)
"""The edges of the graph; see `EdgeKind`."""

failures = _create_memory_table("failures")

lessons = _create_memory_table(
    "lessons",
    Column("scope", NAME, nullable=False),
    Column("status", NAME, nullable=False),
    Column("same_as", NAME, nullable=False),
)
"""`key` is empty. A lesson that repeats an earlier one names it in `same_as`."""
Index(None, lessons.c.tenant, lessons.c.same_as)

uses = Table(
    "uses",
    metadata,
    _create_tenant_column(),
    Column("lesson", NAME, primary_key=True),
    Column("run_id", NAME, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("probability", Double, nullable=False),
    Column("shown", Integer, nullable=False),
    Column("green", Integer, nullable=True),
    Column("cost", Double, nullable=True),
    Column("created", Double, nullable=False),
    Index(None, "tenant", "run_id", "attempt"),
)
"""The outcome of each lesson in each run that it applied to."""

patterns = _create_memory_table(
    "patterns",
    Column("state", NAME, nullable=False),
    Column("embedded", NAME, nullable=False),
)
"""`key` identifies the goal, `family` is the mode; `embedded` is used as for cards, with `pattern_vectors`."""
Index(None, patterns.c.tenant, patterns.c.state, patterns.c.embedded)

pattern_vectors = Table(
    "pattern_vectors",
    metadata,
    _create_tenant_column(),
    Column("pattern_id", NAME, primary_key=True),
    Column("model", NAME, primary_key=True),
    Column("embedding", EMBEDDING, nullable=False),
)
"""The vectors of the patterns' goals; like `vectors`."""

edits = Table(
    "edits",
    metadata,
    _create_tenant_column(),
    Column("run_id", NAME, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("model", NAME, nullable=False),
    Column("kind", Text, nullable=False),
    Column("rung", Text, nullable=False),
    Index(None, "tenant", "model"),
)
"""The outcome of each edit of an answer, numbered from 1; `rung` is empty if the edit did not fit."""

blobs = Table(
    "blobs",
    metadata,
    _create_tenant_column(),
    Column("name", NAME, primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("put", Double, nullable=False),
)
"""Blobs that are stored in the database. `put` is the time of the last put."""

rates = Table(
    "rates",
    metadata,
    _create_tenant_column(),
    Column("name", NAME, primary_key=True),
    Column("level", Double, nullable=False),
    Column("at", Double, nullable=False),
)
"""The tokens left in each shared rate limit, and the time at which that was so."""

evaluations = Table(
    "evaluations",
    metadata,
    _create_tenant_column(),
    Column("name", NAME, primary_key=True),
    Column("plan", Text, nullable=False),
    Column("created", Double, nullable=False),
)

# The rows belong to another tenant than the runs that they name, and outlive them: no foreign key to `runs`.
trials = Table(
    "trials",
    metadata,
    _create_tenant_column(),
    Column("evaluation", NAME, primary_key=True),
    Column("task", NAME, primary_key=True),
    Column("seed", Integer, primary_key=True, autoincrement=False),
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("run_id", NAME, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("final", Integer, nullable=False),
    ForeignKeyConstraint(
        ["tenant", "evaluation"], ["evaluations.tenant", "evaluations.name"], name="fk_trials_evaluation_evaluations"
    ),
)
"""`run_id` and `outcome` are empty until they are known; a `final` outcome never changes."""
