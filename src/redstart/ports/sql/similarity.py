"""Similarity search for cards by the text of a failure, in both databases: an exact search over the whole scope."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Sequence
from operator import mul
from struct import Struct
from typing import Any, NamedTuple, Protocol

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Join,
    Numeric,
    and_,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
)

from redstart.core.learning import CardState
from redstart.ports.sql.schema import VectorColumn, cards, vectors

HUNDREDTHS = 2
"""The decimal digits to which likenesses are compared. Smaller differences are chance, and the newer card is better."""


class NearCard(NamedTuple):
    card_id: str
    likeness: float
    """A cosine; 0 if the card has no vector yet."""
    has_same_signature: bool = False
    """Whether the card has the requested signature."""


class FailureVector(NamedTuple):
    """The vector of a query text, and the model that computed it."""

    model: str
    place: Sequence[float]


class CardQuery(NamedTuple):
    """The tenant and repo whose cards are searched, and the failure signature to find."""

    tenant: str
    repo: str
    key: str
    family: str

    @property
    def condition(self) -> ColumnElement[bool]:
        scope = (cards.c.tenant == self.tenant) & (cards.c.state == CardState.shown.value)
        return scope & or_(cards.c.key == self.key, cards.c.family == self.family)


class SimilaritySearch(Protocol):
    def find_related(
        self, connection: Connection, card_query: CardQuery, vector: FailureVector | None, limit: int
    ) -> list[NearCard]:
        """Find cards with this key, then with this family: the repo first, then by similarity, then newest."""
        ...

    def find_nearest(
        self, connection: Connection, scope: ColumnElement[bool], vector: FailureVector, limit: int
    ) -> list[NearCard]:
        """Find the most similar rows of `vectors` in this scope. Only vectors of the query's model are compared."""
        ...


def join_vectors(vector: FailureVector | None) -> Join:
    """Join the cards with their vectors of this model, if they have one."""
    same_card = (vectors.c.tenant == cards.c.tenant, vectors.c.card_id == cards.c.id)
    return cards.outerjoin(vectors, and_(*same_card, vectors.c.model == (vector.model if vector else "")))


class FileSearch:
    """A search in which SQLite stores the numbers and Python multiplies them."""

    def find_related(
        self, connection: Connection, card_query: CardQuery, vector: FailureVector | None, limit: int
    ) -> list[NearCard]:
        columns = (cards.c.id, cards.c.key, cards.c.repo, cards.c.created, vectors.c.embedding)
        likeness = build_product(vector.place) if vector else None
        ranked: list[tuple[bool, bool, float, float, str, float]] = []
        for card_id, key, repo, created, numbers in connection.execute(
            select(*columns).select_from(join_vectors(vector)).where(card_query.condition)
        ):
            alike = likeness(numbers) if likeness and numbers is not None else 0.0
            order = (key == card_query.key, repo == card_query.repo, round(alike, HUNDREDTHS), created, card_id)
            ranked.append((*order, alike))
        return [NearCard(item[4], item[5], item[0]) for item in heapq.nlargest(limit, ranked)]

    def find_nearest(
        self, connection: Connection, scope: ColumnElement[bool], vector: FailureVector, limit: int
    ) -> list[NearCard]:
        query = select(vectors.c.card_id, vectors.c.embedding).where(scope, vectors.c.model == vector.model)
        likeness = build_product(vector.place)
        # Without SQLAlchemy's rows: with a hundred thousand of them that takes a third of the time.
        rows: Any = connection.execute(query).cursor
        best = heapq.nlargest(limit, ((likeness(packed), card_id) for card_id, packed in rows))
        return [NearCard(card_id, alike) for alike, card_id in best]


def pack_vector(place: Sequence[float]) -> bytes:
    return array("f", place).tobytes()


def build_product(place: Sequence[float]) -> Callable[[bytes], float]:
    """Return a function for the inner product with `place`. Most numbers of a short text are 0 and are skipped."""
    nonzero = [(index, weight) for index, weight in enumerate(place) if weight]
    weights, layout, read = [weight for _, weight in nonzero], "=", 0
    for index, _ in nonzero:
        layout += f"{4 * (index - read)}xf"
        read = index + 1
    unpack = Struct(f"{layout}{4 * (len(place) - read)}x").unpack

    def with_it(packed: bytes) -> float:
        return sum(map(mul, weights, unpack(packed)))

    return with_it


class ServerSearch:
    """A search in Postgres, by pgvector, or more slowly by plain SQL if the extension is missing."""

    def __init__(self, *, extended: bool) -> None:
        self._extended = extended

    def find_related(
        self, connection: Connection, card_query: CardQuery, vector: FailureVector | None, limit: int
    ) -> list[NearCard]:
        likeness = func.coalesce(self._build_likeness(vector), 0.0) if vector else literal(0.0)
        same_key = cards.c.key == card_query.key
        query = (
            select(cards.c.id, likeness, same_key)
            .select_from(join_vectors(vector))
            .where(card_query.condition)
            .order_by(
                same_key.desc(),
                (cards.c.repo == card_query.repo).desc(),
                func.round(cast(likeness, Numeric), HUNDREDTHS).desc(),
                cards.c.created.desc(),
                cards.c.id.desc(),
            )
            .limit(limit)
        )
        return [NearCard(*row) for row in connection.execute(query)]

    def find_nearest(
        self, connection: Connection, scope: ColumnElement[bool], vector: FailureVector, limit: int
    ) -> list[NearCard]:
        likeness = self._build_likeness(vector)
        query = select(vectors.c.card_id, likeness).where(scope, vectors.c.model == vector.model)
        ordered = query.order_by(likeness.desc()).limit(limit)
        return [NearCard(card_id, alike) for card_id, alike in connection.execute(ordered)]

    def _build_likeness(self, vector: FailureVector) -> ColumnElement[float]:
        return build_product_sql(vectors.c.embedding, vector, extended=self._extended)


def build_product_sql(numbers: ColumnElement[Any], vector: FailureVector, *, extended: bool) -> ColumnElement[float]:
    """Build the SQL expression for the inner product of a column and a vector."""
    place = ",".join(map(str, array("f", vector.place)))
    if extended:
        query_vector = cast(bindparam(None, f"[{place}]"), VectorColumn())
        return -cast(numbers, VectorColumn()).op("<#>", return_type=Float())(query_vector)
    pairs = func.unnest(numbers, literal_column(f"'{{{place}}}'::real[]")).table_valued("a", "b")
    pair = pairs.render_derived()
    return select(func.sum(cast(pair.c.a, Float) * cast(pair.c.b, Float))).scalar_subquery()


def is_extended(connection: Connection) -> bool:
    """Return whether the server has pgvector."""
    return bool(connection.execute(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")).scalar())
