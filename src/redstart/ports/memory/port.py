"""The port to what was learned. Writing is the run store's: it happens in the commit of `remember`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from redstart.core.learning import CardState, FixCard, Recalled, Signature
from redstart.core.pattern import RecalledPattern


class Memory(Protocol):
    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[Recalled]:
        """Cards of verified runs of this tenant that may help with this failure, at most `limit`.

        First those of the same signature, then those of the same family, then those whose words are alike: all of the
        same repo that are alike enough, before any of the others. Within the first two kinds those of the same repo
        come first, then those whose words are more alike (to a hundredth), then the newest. A score is 1 for the same
        signature, 0.5 for the same family, and half of the likeness for the rest. Never another tenant's, never one in
        quarantine.
        """
        ...

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        """How verified runs of this tenant reached goals like this one, at most `limit`, in whatever repo.

        The more alike come first (to a hundredth), then those of the same repo, then the newest; of those that have
        the same goal in the same repo only the newest. None whose goal is not alike enough (`Embedder.near_goals`),
        never another tenant's, never one in quarantine.
        """
        ...


class Embedder(Protocol):
    """Gives texts their places in a space where alike ones lie close together."""

    @property
    def name(self) -> str:
        """The model and its version: places that two names gave are never compared."""
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def near(self) -> float:
        """From which likeness (a cosine) on two failures are alike enough for one to help with the other."""
        ...

    @property
    def near_goals(self) -> float:
        """The same for two goals: from which likeness on the plan of one may help with the other."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """A vector of length 1 for each; all zeros for one that says nothing.

        Raises an error of `core/errors.py` where its machinery is out of order.
        """
        ...


class KeptCard(NamedTuple):
    card: FixCard
    state: CardState
    repo: str
    created: datetime


class Forgotten(NamedTuple):
    """What to look through where blobs are kept outside of the database."""

    texts: tuple[str, ...]
    """What the card said."""
    blobs: frozenset[str]
    """Those in which runs that made or saw it may have written that down."""


class Cards(Protocol):
    """All cards of a tenant, for people to look at and to decide on."""

    async def cards(self, *, repo: str | None = None, limit: int = 50) -> list[KeptCard]:
        """The newest first."""
        ...

    async def card(self, card_id: str) -> KeptCard | None: ...

    async def put(self, card_id: str, state: CardState) -> bool:
        """Shows it again, or puts it into quarantine. Whether there is such a card."""
        ...

    async def forget(self, card_id: str) -> Forgotten | None:
        """Removes it, and its words from all that runs wrote down in the database; None where there is none.

        A run that made or saw it can be looked at as before, but not replayed. Raises `StoreError`, with nothing
        removed, while such a run has not ended: it would write the words again.
        """
        ...
