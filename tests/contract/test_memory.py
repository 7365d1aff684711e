from __future__ import annotations

from redstart.testing.contracts.memory import MemoryContract


class TestMemory(MemoryContract):
    """On every store of `conftest`."""
