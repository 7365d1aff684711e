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
    same: bool = False
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
    def akin(self) -> ColumnElement[bool]:
        mine = (cards.c.tenant == self.tenant) & (cards.c.state == CardState.shown.value)
        return mine & or_(cards.c.key == self.key, cards.c.family == self.family)


class SimilaritySearch(Protocol):
    def akin(self, connection: Connection, wanted: CardQuery, of: FailureVector | None, limit: int) -> list[NearCard]:
        """Find cards with this key, then with this family: the repo first, then by similarity, then newest."""
        ...

    def nearest(
        self, connection: Connection, scope: ColumnElement[bool], of: FailureVector, limit: int
    ) -> list[NearCard]:
        """Find the most similar rows of `vectors` in this scope. Only vectors of the query's model are compared."""
        ...


def placed(of: FailureVector | None) -> Join:
    """Join the cards with their vectors of this model, if they have one."""
    same = (vectors.c.tenant == cards.c.tenant, vectors.c.card_id == cards.c.id)
    return cards.outerjoin(vectors, and_(*same, vectors.c.model == (of.model if of else "")))


class FileSearch:
    """A search in which SQLite stores the numbers and Python multiplies them."""

    def akin(self, connection: Connection, wanted: CardQuery, of: FailureVector | None, limit: int) -> list[NearCard]:
        shown = (cards.c.id, cards.c.key, cards.c.repo, cards.c.created, vectors.c.embedding)
        likeness = product(of.place) if of else None
        found: list[tuple[bool, bool, float, float, str, float]] = []
        for card_id, key, repo, created, numbers in connection.execute(
            select(*shown).select_from(placed(of)).where(wanted.akin)
        ):
            alike = likeness(numbers) if likeness and numbers is not None else 0.0
            order = (key == wanted.key, repo == wanted.repo, round(alike, HUNDREDTHS), created, card_id)
            found.append((*order, alike))
        return [NearCard(item[4], item[5], item[0]) for item in heapq.nlargest(limit, found)]

    def nearest(
        self, connection: Connection, scope: ColumnElement[bool], of: FailureVector, limit: int
    ) -> list[NearCard]:
        query = select(vectors.c.card_id, vectors.c.embedding).where(scope, vectors.c.model == of.model)
        likeness = product(of.place)
        # Without SQLAlchemy's rows: with a hundred thousand of them that takes a third of the time.
        rows: Any = connection.execute(query).cursor
        best = heapq.nlargest(limit, ((likeness(packed), card_id) for card_id, packed in rows))
        return [NearCard(card_id, alike) for alike, card_id in best]


def packed(place: Sequence[float]) -> bytes:
    return array("f", place).tobytes()


def product(place: Sequence[float]) -> Callable[[bytes], float]:
    """Return a function for the inner product with `place`. Most numbers of a short text are 0 and are skipped."""
    said = [(index, weight) for index, weight in enumerate(place) if weight]
    weights, layout, read = [weight for _, weight in said], "=", 0
    for index, _ in said:
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

    def akin(self, connection: Connection, wanted: CardQuery, of: FailureVector | None, limit: int) -> list[NearCard]:
        likeness = func.coalesce(self._likeness(of), 0.0) if of else literal(0.0)
        same = cards.c.key == wanted.key
        query = (
            select(cards.c.id, likeness, same)
            .select_from(placed(of))
            .where(wanted.akin)
            .order_by(
                same.desc(),
                (cards.c.repo == wanted.repo).desc(),
                func.round(cast(likeness, Numeric), HUNDREDTHS).desc(),
                cards.c.created.desc(),
                cards.c.id.desc(),
            )
            .limit(limit)
        )
        return [NearCard(*row) for row in connection.execute(query)]

    def nearest(
        self, connection: Connection, scope: ColumnElement[bool], of: FailureVector, limit: int
    ) -> list[NearCard]:
        likeness = self._likeness(of)
        query = select(vectors.c.card_id, likeness).where(scope, vectors.c.model == of.model)
        ordered = query.order_by(likeness.desc()).limit(limit)
        return [NearCard(card_id, alike) for card_id, alike in connection.execute(ordered)]

    def _likeness(self, of: FailureVector) -> ColumnElement[float]:
        return product_on_server(vectors.c.embedding, of, extended=self._extended)


def product_on_server(numbers: ColumnElement[Any], of: FailureVector, *, extended: bool) -> ColumnElement[float]:
    """Build the SQL expression for the inner product of a column and a vector."""
    place = ",".join(map(str, array("f", of.place)))
    if extended:
        given = cast(bindparam(None, f"[{place}]"), VectorColumn())
        return -cast(numbers, VectorColumn()).op("<#>", return_type=Float())(given)
    each = func.unnest(numbers, literal_column(f"'{{{place}}}'::real[]")).table_valued("a", "b")
    pair = each.render_derived()
    return select(func.sum(cast(pair.c.a, Float) * cast(pair.c.b, Float))).scalar_subquery()


def is_extended(connection: Connection) -> bool:
    """Return whether the server has pgvector."""
    return bool(connection.execute(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")).scalar())
