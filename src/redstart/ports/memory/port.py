"""The port to what runs learned. The run store writes it, in the commit of `remember`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from redstart.core.chat import Usage
from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.learning import CardState, FailureRecord, FixCard, RecalledCard, Signature
from redstart.core.lesson import Lesson, LessonOffer, LessonOutcome, LessonPlacement, LessonStatus, Situation
from redstart.core.pattern import RecalledPattern


class Memory(Protocol):
    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        """Find cards of verified runs of this tenant that may help with this failure, at most `limit`.

        First those with the same signature, then those of the same family, then those with similar text: all that are
        similar enough in the same repo, before those of other repos. Within the first two kinds, cards of the same repo
        come first, then those with more similar text (to a hundredth), then the newest. The score is 1 for the same
        signature, 0.5 for the same family, and half of the likeness for the rest.

        A card of another repo with another signature must be more similar (`Embedder.near_elsewhere`), and neither
        failure may be a plain assertion. Cards of other tenants and quarantined cards are never returned. If texts
        cannot be compared now, cards of the same signature, and those of the same family and repo, are still found.
        """
        ...

    async def recall_patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        """Find how verified runs of this tenant reached similar goals in any repo, at most `limit`.

        The most similar come first (to a hundredth), then those of the same repo, then the newest. Of patterns with the
        same goal in the same repo, only the newest is returned. Patterns whose goal is not similar enough
        (`GoalEmbedder.near_goals`), of other tenants or in quarantine are never returned.
        """
        ...

    async def recall_failures(
        self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3
    ) -> list[RecalledFailure]:
        """Find attempts of this tenant that failed to fix one of these failures, at most `limit`, each patch once.

        First those with the same signature, those of the same repo before others; then those of the same repo with a
        failure of the same family in the same test. Among equals, newer ones come first. Attempts of other tenants, and
        those that the query excludes, are never returned.
        """
        ...


class AttemptMemory(Memory, Protocol):
    """Memory as a step sees it. Journaled."""

    async def recall_again(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        """Recall by the failure of the previous attempt. Recorded separately from the recall at the run's start."""
        ...


class Meter(Protocol):
    """Accounts for the model usage of a recall, and receives notice of gaps in it."""

    def reserve(self, usd: float | None, tokens: int) -> None:
        """Reserve this amount until `settle`. Raises `BudgetExceeded` if it does not fit."""
        ...

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        """Release what `reserve` held, and count `used`."""
        ...

    def lacks(self, reason: str) -> None:
        """Report that no texts, or only those of some cards, could be compared."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A memory that may ask a model."""

    @property
    def asks(self) -> str:
        """The model's name; empty if it asks none."""
        ...

    def with_meter(self, meter: Meter) -> Memory:
        """Return the same memory, with its usage reported to this meter."""
        ...


class Lessons(Protocol):
    """Lessons as a step sees them. Journaled."""

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        """Return the lessons that may apply, best first, each with the status that its outcomes so far justify."""
        ...

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        """Return a proposed lesson as it should be stored, or the reason why it is rejected.

        The stored lesson is dated, and names in `same_as` an earlier lesson that says the same.
        """
        ...


class LessonUse(NamedTuple):
    use: LessonOutcome
    ended_at: float
    """When the run ended, in seconds since the epoch."""


class LessonStore(Protocol):
    """All lessons that a tenant may see: its own, and those approved for everyone."""

    async def list_lessons(self) -> list[Lesson]:
        """List the lessons, oldest first, with their last stored status. Counts and sources are not filled in."""
        ...

    async def list_uses(self, lesson_ids: Sequence[str]) -> dict[str, list[LessonUse]]:
        """List the outcomes of these lessons in the tenant's own runs, in the order in which the runs ended."""
        ...

    async def put(self, lesson: Lesson, *, unless_status: LessonStatus | None = None) -> bool:
        """Update status, scope or date of one of the tenant's own lessons. Returns whether a lesson was updated.

        A lesson that now has the status `unless_status` is not changed.
        """
        ...

    async def preview_forget(self, lesson_id: str) -> ForgottenTexts | None:
        """Return what `forget` would return, without removing anything. Raises as `forget` does."""
        ...

    async def forget(self, lesson_id: str) -> ForgottenTexts | None:
        """Remove the lesson, all lessons that say the same, and all uses; see `SqlCards.forget`."""
        ...


class Embedder(Protocol):
    """Computes vectors of texts. Similar texts have similar vectors."""

    @property
    def name(self) -> str:
        """The model and its version. Vectors of different names are never compared. Read it after `embed`."""
        ...

    @property
    def remote(self) -> bool:
        """Whether a remote model computes the vectors: that may cost money, and may fail."""
        ...

    @property
    def dimension(self) -> int:
        """The number of elements of a vector. Read it after `embed`."""
        ...

    @property
    def near(self) -> float:
        """The minimum likeness (a cosine) at which a fix of one failure may help with another in the same repo."""
        ...

    @property
    def near_elsewhere(self) -> float:
        """The minimum likeness at which a fix of one failure may help with another in another repo."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return a vector of length 1 for each text; all zeros for a text without content.

        Raises `ModelError` if the model returns none, `BudgetExceeded` if the call could cost too much, and
        `ConfigError` if the settings are invalid.
        """
        ...

    def with_meter(self, meter: Meter) -> Embedder:
        """Return the same embedder, with its costs reserved at this meter."""
        ...


@runtime_checkable
class GoalEmbedder(Embedder, Protocol):
    """An embedder that can also compare goals."""

    @property
    def near_goals(self) -> float:
        """The minimum likeness at which the plan for one goal may help with another."""
        ...


class KeptCard(NamedTuple):
    card: FixCard
    state: CardState
    repo: str
    created: datetime


class KeptFailure(NamedTuple):
    record: FailureRecord
    repo: str
    created: datetime


class Approval(NamedTuple):
    """Who approved that a card may be shown, and when. Stored with the card's provenance."""

    approved_by: str
    approved_at: str


class MemoryCounts(NamedTuple):
    """The contents of the memory in numbers."""

    states: dict[str, int]
    """Cards by state."""
    repos: dict[str, int]
    """Cards by the repo that they come from, the most frequent first."""
    failures: int
    """The number of stored failed attempts."""
    recalls: dict[str, frozenset[str]]
    """The runs that recalled a card, by the card's ID, as far as those runs are still stored."""


class ForgottenTexts(NamedTuple):
    """The forgotten texts, and the blobs outside the database that may still contain them."""

    texts: tuple[str, ...]
    """The texts of the card or lesson."""
    blobs: frozenset[str]
    """The blobs in which runs that made or saw it may have stored the texts."""
