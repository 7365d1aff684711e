"""The machine's own clock and randomness."""

from __future__ import annotations

import secrets
import time


class SystemWorld:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def generate_id(self) -> str:
        return secrets.token_hex(6)


class NumberedWorld(SystemWorld):
    """IDs that are the same each time: for the demo, whose event log is compared."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._count = 0

    def generate_id(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}"
