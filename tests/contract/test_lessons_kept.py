"""Lessons in memory, in SQLite and in Postgres."""

from __future__ import annotations

from redstart.testing.contracts.lessons import LessonStoreContract


class TestShelf(LessonStoreContract):
    pass
