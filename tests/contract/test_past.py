from __future__ import annotations

from redstart.testing.contracts.past import PastContract


class TestPast(PastContract):
    """On every store of `conftest`."""
