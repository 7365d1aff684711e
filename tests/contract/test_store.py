from __future__ import annotations

from redstart.testing.contracts.run_status import StandingContract
from redstart.testing.contracts.store import StoreContract


class TestStore(StoreContract):
    """On every store of `conftest`."""


class TestStanding(StandingContract):
    """On the same stores."""
