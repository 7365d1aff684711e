"""The tables. JSON is kept as text and time as seconds since the epoch, so that every database keeps them alike.

Every table has a tenant, which is the first part of every key. In Postgres each table shows a connection only the rows
of the tenant that the connection was opened for; SQLite has no such thing, and each query names the tenant.
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
"""The newest revision in `migrations/versions`. A database that is at it is opened without importing Alembic."""

HOME = "home"
"""The tenant of whoever names none."""

GOAL_SHOWN = 200
"""How much of a goal the list of runs carries."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_run_id_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

NAME = Text().with_variant(Text(collation="C"), "postgresql")
"""A name that is compared letter by letter, whatever language the database speaks."""


class VectorColumn(UserDefinedType[str]):
    """pgvector's. Where the server has no such extension, the column was made as an array of `real`."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "vector"


EMBEDDING = LargeBinary().with_variant(VectorColumn(), "postgresql")
"""In SQLite the bytes of float32 numbers, as the machine has them."""


def _tenant() -> Column[str]:
    return Column("tenant", NAME, primary_key=True)


def _of_run() -> tuple[Column[str], Column[str], ForeignKeyConstraint]:
    """The columns that say whose row it is. The default serves programs of before, which knew one tenant."""
    return (
        Column("tenant", NAME, primary_key=True, server_default=HOME),
        Column("run_id", NAME, primary_key=True),
        ForeignKeyConstraint(["tenant", "run_id"], ["runs.tenant", "runs.id"]),
    )


runs = Table(
    "runs",
    metadata,
    _tenant(),
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
    # For the list: the newest are read, and the others not looked at. The id is not in them, or a database that does
    # not know its tables well yet would look for single runs there, through all of a tenant's.
    Index(None, "tenant", "created"),
    Index(None, "tenant", "errand", "created"),
    Index(None, "tenant", "folder", "errand", "created"),
)

steps = Table(
    "steps",
    metadata,
    *_of_run(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("step", Text, nullable=False),
    Column("artifact", Text, nullable=False),
    Column("state", Text, nullable=False),
)

events = Table(
    "events",
    metadata,
    *_of_run(),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
)

journal = Table(
    "journal",
    metadata,
    *_of_run(),
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


told = Table(
    "told",
    metadata,
    *_of_run(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("word", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("time", Double, nullable=False),
)


# What was learned outlives the run it was learned in: no foreign key to `runs`.
def _learned(name: str, *more: SchemaItem) -> Table:
    return Table(
        name,
        metadata,
        _tenant(),
        Column("id", NAME, primary_key=True),
        Column("repo", Text, nullable=False),
        Column("run_id", NAME, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("key", NAME, nullable=False),
        Column("family", NAME, nullable=False),
        Column("body", Text, nullable=False),
        Column("created", Double, nullable=False),
        *more,
        UniqueConstraint("tenant", "run_id", "attempt"),
    )


# The defaults serve programs of before, which knew neither.
cards = _learned(
    "cards",
    Column("state", NAME, nullable=False, server_default="shown"),
    Column("embedded", NAME, nullable=False, server_default=""),
)
"""`embedded` names the model of the newest row in `vectors`; empty where there is none."""
Index(None, cards.c.tenant, cards.c.key)
Index(None, cards.c.tenant, cards.c.family)
Index(None, cards.c.tenant, cards.c.state, cards.c.embedded)

vectors = Table(
    "vectors",
    metadata,
    _tenant(),
    Column("card_id", NAME, primary_key=True),
    Column("model", NAME, primary_key=True),
    Column("repo", NAME, nullable=False),
    Column("embedding", EMBEDDING, nullable=False),
    Index(None, "tenant", "model", "repo"),
)
"""Where the words of a card lie. Made from the cards, and made anew where another model is asked."""

edges = Table(
    "edges",
    metadata,
    _tenant(),
    Column("run_id", NAME, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("kind", NAME, primary_key=True),
    Column("source", NAME, primary_key=True),
    Column("target", NAME, primary_key=True),
    Column("repo", NAME, nullable=False),
    Column("created", Double, nullable=False),
    Index(None, "tenant", "kind", "target"),
)
"""What belongs together; see `EdgeKind`."""

failures = _learned("failures")

lessons = _learned(
    "lessons",
    Column("scope", NAME, nullable=False),
    Column("status", NAME, nullable=False),
    Column("same_as", NAME, nullable=False),
)
"""`key` is empty. A lesson that says what another one said before names it in `same_as`."""
Index(None, lessons.c.tenant, lessons.c.same_as)

uses = Table(
    "uses",
    metadata,
    _tenant(),
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
"""What each run that a lesson applied to says of it."""

patterns = _learned(
    "patterns",
    Column("state", NAME, nullable=False),
    Column("embedded", NAME, nullable=False),
)
"""`key` is of the goal, `family` the mode; `embedded` as of a card, for `pattern_vectors`."""
Index(None, patterns.c.tenant, patterns.c.state, patterns.c.embedded)

pattern_vectors = Table(
    "pattern_vectors",
    metadata,
    _tenant(),
    Column("pattern_id", NAME, primary_key=True),
    Column("model", NAME, primary_key=True),
    Column("embedding", EMBEDDING, nullable=False),
)
"""Where the goals of patterns lie; as `vectors`."""

edits = Table(
    "edits",
    metadata,
    _tenant(),
    Column("run_id", NAME, primary_key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("model", NAME, nullable=False),
    Column("kind", Text, nullable=False),
    Column("rung", Text, nullable=False),
    Index(None, "tenant", "model"),
)
"""What became of each edit of an answer, from 1; `rung` is empty where it did not fit."""

blobs = Table(
    "blobs",
    metadata,
    _tenant(),
    Column("name", NAME, primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("put", Double, nullable=False),
)
"""Where blobs are kept in the database. `put` is when that was last done."""

rates = Table(
    "rates",
    metadata,
    _tenant(),
    Column("name", NAME, primary_key=True),
    Column("level", Double, nullable=False),
    Column("at", Double, nullable=False),
)
"""What is left of a rate that all workers share, and at which moment that was so."""

evaluations = Table(
    "evaluations",
    metadata,
    _tenant(),
    Column("name", NAME, primary_key=True),
    Column("plan", Text, nullable=False),
    Column("created", Double, nullable=False),
)

# Of another tenant than the runs it names, and it outlives them: no foreign key to `runs`.
trials = Table(
    "trials",
    metadata,
    _tenant(),
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
"""`run_id` and `outcome` are empty until there is one; a `final` outcome stays as it is."""
