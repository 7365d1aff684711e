"""How alike the words of cards are to those of a failure, in either database: always exactly, over all in the scope."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Sequence
from operator import itemgetter, mul
from typing import Any, NamedTuple, Protocol

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Join,
    Numeric,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    text,
)

from redstart.ports.sql.schema import Vector, cards, vectors

HUNDREDTHS = 2
"""To so many digits two likenesses are told apart: below that it is chance, and the newer one is worth more."""


class Hit(NamedTuple):
    card_id: str
    likeness: float
    """A cosine; 0 where the words of the card have no place yet."""


class Where(NamedTuple):
    """The failure that is asked about, as one model sees it."""

    model: str
    place: Sequence[float]


class Nearness(Protocol):
    def sorted(
        self, connection: Connection, wanted: ColumnElement[bool], repo: str, of: Where | None, limit: int
    ) -> list[Hit]:
        """The first of the cards that are `wanted`: of this repo, then the more alike, then the newer."""
        ...

    def nearest(self, connection: Connection, scope: ColumnElement[bool], of: Where, limit: int) -> list[Hit]:
        """The rows of `vectors` in this scope that are most alike; the model is seen to here."""
        ...


def placed(of: Where | None) -> Join:
    """The cards, each with where its words lie by this model, if that is known."""
    same = (vectors.c.tenant == cards.c.tenant, vectors.c.card_id == cards.c.id)
    return cards.outerjoin(vectors, and_(*same, vectors.c.model == (of.model if of else "")))


class InFile:
    """SQLite keeps the numbers, and they are multiplied here."""

    def sorted(
        self, connection: Connection, wanted: ColumnElement[bool], repo: str, of: Where | None, limit: int
    ) -> list[Hit]:
        query = select(cards.c.id, cards.c.repo, cards.c.created, vectors.c.embedding).select_from(placed(of))
        likeness = product(of.place) if of else None
        found: list[tuple[tuple[bool, float, float, str], float]] = []
        for card_id, card_repo, created, packed in connection.execute(query.where(wanted)):
            alike = likeness(packed) if likeness and packed is not None else 0.0
            found.append(((card_repo == repo, round(alike, HUNDREDTHS), created, card_id), alike))
        return [Hit(key[3], alike) for key, alike in heapq.nlargest(limit, found)]

    def nearest(self, connection: Connection, scope: ColumnElement[bool], of: Where, limit: int) -> list[Hit]:
        query = select(vectors.c.card_id, vectors.c.embedding).where(scope, vectors.c.model == of.model)
        likeness = product(of.place)
        # Past SQLAlchemy's rows: at a hundred thousand of them that is a third of the time.
        rows: Any = connection.execute(query).cursor
        best = heapq.nlargest(limit, ((likeness(packed), card_id) for card_id, packed in rows))
        return [Hit(card_id, alike) for alike, card_id in best]


def packed(place: Sequence[float]) -> bytes:
    return array("f", place).tobytes()


def product(place: Sequence[float]) -> Callable[[bytes], float]:
    """The inner product with `place`. Most of a short text's numbers are 0, and are left out."""
    said = [(index, weight) for index, weight in enumerate(place) if weight]
    if len(said) < 2:
        said += [(0, 0.0), (0, 0.0)]
    pick, weights = itemgetter(*(index for index, _ in said)), [weight for _, weight in said]

    def with_it(packed: bytes) -> float:
        return sum(map(mul, weights, pick(memoryview(packed).cast("f"))))

    return with_it


class OnServer:
    """Postgres with pgvector does it; where the extension is missing, plain SQL does, more slowly."""

    def __init__(self, *, extended: bool) -> None:
        self._extended = extended

    def sorted(
        self, connection: Connection, wanted: ColumnElement[bool], repo: str, of: Where | None, limit: int
    ) -> list[Hit]:
        likeness = func.coalesce(self._likeness(of), 0.0) if of else literal(0.0)
        query = (
            select(cards.c.id, likeness)
            .select_from(placed(of))
            .where(wanted)
            .order_by(
                case((cards.c.repo == repo, 0), else_=1),
                func.round(cast(likeness, Numeric), HUNDREDTHS).desc(),
                cards.c.created.desc(),
                cards.c.id.desc(),
            )
            .limit(limit)
        )
        return [Hit(card_id, alike) for card_id, alike in connection.execute(query)]

    def nearest(self, connection: Connection, scope: ColumnElement[bool], of: Where, limit: int) -> list[Hit]:
        likeness = self._likeness(of)
        query = select(vectors.c.card_id, likeness).where(scope, vectors.c.model == of.model)
        ordered = query.order_by(likeness.desc()).limit(limit)
        return [Hit(card_id, alike) for card_id, alike in connection.execute(ordered)]

    def _likeness(self, of: Where) -> ColumnElement[float]:
        numbers = ",".join(map(str, array("f", of.place)))
        if self._extended:
            place = cast(bindparam(None, f"[{numbers}]"), Vector())
            return -cast(vectors.c.embedding, Vector()).op("<#>", return_type=Float())(place)
        each = func.unnest(vectors.c.embedding, literal_column(f"'{{{numbers}}}'::real[]")).table_valued("a", "b")
        pair = each.render_derived()
        return select(func.sum(cast(pair.c.a, Float) * cast(pair.c.b, Float))).scalar_subquery()


def is_extended(connection: Connection) -> bool:
    """Whether the server has pgvector."""
    return bool(connection.execute(text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")).scalar())
