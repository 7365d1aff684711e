"""The stores of runs; each contract test runs on every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from redstart.ports.memory.hashing import HashingEmbedder
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, Stores
from support.rig import Keep, in_memory, open_stores

SQL = ["sqlite", "postgres"]
PROMPT = {"TestInline": "memory", "TestLangGraph": "sqlite", "TestTemporal": "postgres", "two_pools": "postgres"}
"""The store of each engine in the default test run; testing every engine on every store takes minutes."""


SLOW = ("TestLangGraph", "TestTemporal", "two_pools")
"""Tests that take seconds each: only every third step and scenario runs by default."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        spec = getattr(item, "callspec", None)
        keep_name = spec.params.get("keep") if spec is not None else None
        if keep_name is not None and not any(
            name in item.nodeid and keep_name == required_keep for name, required_keep in PROMPT.items()
        ):
            item.add_marker(pytest.mark.soak)
        elif keep_name is not None and any(name in item.nodeid for name in SLOW):
            places = [spec.indices[name] for name in ("step", "scenario") if name in spec.indices]
            if any(place % 3 for place in places):
                item.add_marker(pytest.mark.soak)


@pytest.fixture
def make_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Database]]:
    """Open new databases of the named kind; they are closed at the end."""
    numbers = count()

    with ExitStack() as stack:

        def make(kind: str) -> Database:
            if kind == "sqlite":
                return stack.enter_context(Database.open(tmp_path / f"store-{next(numbers)}.db"))
            return stack.enter_context(Database.open(request.getfixturevalue("new_postgres")()))

        yield make


@pytest.fixture(params=SQL)
def database(request: pytest.FixtureRequest, make_database: Callable[[str], Database]) -> Database:
    return make_database(request.param)


@pytest.fixture
def stores(database: Database) -> Stores:
    return _in_sql(database, Clock())


@pytest.fixture(params=["memory", *SQL])
def keep(request: pytest.FixtureRequest, make_database: Callable[[str], Database]) -> Keep:
    """Return a function that opens the stores of a rig's runs."""
    return in_memory if request.param == "memory" else lambda: open_stores(make_database(request.param))


def _in_sql(database: Database, clock: Clock) -> Stores:
    return Stores(
        SqlStore(database, clock),
        SqlJournal(database),
        SqlMemory(database, HashingEmbedder()),
        SqlLessonStore(database),
        clock,
        lambda tenant: _in_sql(database.for_tenant(tenant), clock),
    )
