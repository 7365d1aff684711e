from __future__ import annotations

from redstart.testing.contracts.past import PastContract


class TestPast(PastContract):
    """On every place of `conftest`."""
