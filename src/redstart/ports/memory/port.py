"""The port to what was learned. Writing is the run store's: it happens in the commit of `remember`."""

from __future__ import annotations

from typing import Protocol

from redstart.core.learning import Recalled, Signature


class Memory(Protocol):
    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[Recalled]:
        """Cards of verified runs of this tenant: first those of the same signature, then those of the same family.

        Newest first within each, those of the same repo before others; never another tenant's.
        """
        ...
