from __future__ import annotations

from redstart.testing.contracts.journal import JournalContract


class TestJournal(JournalContract):
    """On every store of `conftest`."""
