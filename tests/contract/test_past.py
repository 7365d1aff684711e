from __future__ import annotations

from redstart.testing.contracts.run_history import PastContract


class TestPast(PastContract):
    """On every store of `conftest`."""
