"""Lessons in memory, in SQLite and in Postgres."""

from __future__ import annotations

from redstart.testing.contracts.lessons import ShelfContract


class TestShelf(ShelfContract):
    pass
