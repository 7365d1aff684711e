from __future__ import annotations

from redstart.testing.contracts.standing import StandingContract
from redstart.testing.contracts.store import StoreContract


class TestStore(StoreContract):
    """On every place of `conftest`."""


class TestStanding(StandingContract):
    """On the same places."""
