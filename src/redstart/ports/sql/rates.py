"""Rate limits in SQL, shared by all workers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Double, bindparam, case, update
from sqlalchemy.dialects import postgresql, sqlite

from redstart.ports.sql.engine import Database
from redstart.ports.sql.schema import rates

A_MINUTE = 60.0

_SIZE: BindParameter[float] = bindparam("size", type_=Double())
_NOW: BindParameter[float] = bindparam("now", type_=Double())
_TOKENS: BindParameter[float] = bindparam("tokens", type_=Double())


def _select_least(left: ColumnElement[float], right: ColumnElement[float]) -> ColumnElement[float]:
    return case((left < right, left), else_=right)


# If clocks differ, the fastest one counts: a slower clock adds nothing, so no minute is added twice. A clock that is
# ahead by more than a minute is considered wrong and ignored.
_elapsed = case((rates.c.at < _NOW, _NOW - rates.c.at), else_=0.0)
_updated_at = case((rates.c.at.between(_NOW, _NOW + A_MINUTE), rates.c.at), else_=_NOW)
_flowed = _select_least(rates.c.level + _elapsed * _SIZE / A_MINUTE, _SIZE)
_GIVE_BACK = (
    update(rates)
    .where(rates.c.tenant == bindparam("my_tenant"), rates.c.name == bindparam("my_name"))
    .values(level=_select_least(_flowed + _TOKENS, _SIZE), at=_updated_at)
)


class SqlRates:
    """Token buckets that refill evenly up to one minute's worth, shared by all users of this database and tenant.

    `now` is in seconds since the epoch. Each call is one statement, so that no two calls get the same tokens.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        insert = postgresql.insert if database.is_postgres else sqlite.insert
        self._take = (
            insert(rates)
            .on_conflict_do_update(
                index_elements=["tenant", "name"], set_={"level": _flowed - _TOKENS, "at": _updated_at}
            )
            .returning(rates.c.level)
        )

    def take(self, name: str, tokens: int, a_minute: int, now: float) -> float:
        """Take tokens, at most one minute's worth. Return the seconds to wait before they may be used."""
        size, amount = float(a_minute), float(min(tokens, a_minute))
        row: dict[str, Any] = {"tenant": self._database.tenant, "name": name, "level": size - amount, "at": now}
        with self._database.connect_for_statement() as connection:
            level = connection.execute(self._take, {**row, "size": size, "tokens": amount, "now": now}).scalar_one()
        return max(-level, 0.0) * A_MINUTE / size

    def give_back(self, name: str, tokens: int, a_minute: int, now: float) -> None:
        """Return unused tokens to the bucket. A negative number means that more were used than taken."""
        key = {"my_tenant": self._database.tenant, "my_name": name}
        with self._database.connect_for_statement() as connection:
            connection.execute(_GIVE_BACK, {**key, "size": float(a_minute), "tokens": float(tokens), "now": now})
