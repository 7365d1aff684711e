"""The port to what was learned. Writing is the run store's: it happens in the commit of `remember`."""

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
        """Cards of verified runs of this tenant that may help with this failure, at most `limit`.

        First those of the same signature, then those of the same family, then those whose words are alike: all of the
        same repo that are alike enough, before any of the others. Within the first two kinds those of the same repo
        come first, then those whose words are more alike (to a hundredth), then the newest. A score is 1 for the same
        signature, 0.5 for the same family, and half of the likeness for the rest. Never another tenant's, never one in
        quarantine. Where words cannot be compared now, the first two kinds are found all the same.
        """
        ...

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        """How verified runs of this tenant reached goals like this one, at most `limit`, in whatever repo.

        The more alike come first (to a hundredth), then those of the same repo, then the newest; of those that have
        the same goal in the same repo only the newest. None whose goal is not alike enough (`GoalEmbedder.near_goals`),
        never another tenant's, never one in quarantine.
        """
        ...

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        """Attempts of this tenant that failed at one of these failures, at most `limit`, each patch once.

        First those of the same signature, the same repo's before others; then those of the same repo whose failure is
        of the same family in the same test. Newer ones come first among their like. Never another tenant's, and none
        that the query is to do without.
        """
        ...


class AttemptMemory(Memory, Protocol):
    """Memory as a step has it. Journaled."""

    async def recall_again(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        """As `recall`, by the failure of the attempt before; recorded apart from what the run recalled at its start."""
        ...


class Meter(Protocol):
    """Hears what a recall takes of a model, and what it has to do without."""

    def reserve(self, usd: float | None, tokens: int) -> None:
        """Holds that much until `settle`. Raises `BudgetExceeded` where it does not fit."""
        ...

    def settle(self, usd: float | None, tokens: int, used: Usage) -> None:
        """Gives back what `reserve` held; `used` was used."""
        ...

    def lacks(self, why: str) -> None:
        """Words could not be compared, or not those of all cards."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A memory that may ask a model."""

    @property
    def asks(self) -> str:
        """The model's name; empty where it asks none."""
        ...

    def under(self, meter: Meter) -> Memory:
        """The same memory, which tells this meter."""
        ...


class Lessons(Protocol):
    """Lessons as a step sees them. Journaled."""

    async def offered(self, situation: Situation) -> LessonOffer:
        """Those that may apply there, the best first, each with the status that its runs so far have earned it."""
        ...

    async def placed(self, lesson: Lesson) -> LessonPlacement:
        """A proposed lesson as it is to be kept, dated, with the one named in `same_as` that said the same before; or
        why it may not become one."""
        ...


class LessonUse(NamedTuple):
    use: LessonOutcome
    at: float
    """When the run ended, in seconds since the epoch."""


class LessonStore(Protocol):
    """All lessons that a tenant may see: its own, and those that were approved for everyone."""

    async def lessons(self) -> list[Lesson]:
        """The oldest first, in the status that they were last given; their counts and sources are not filled in."""
        ...

    async def uses(self, lesson_ids: Sequence[str]) -> dict[str, list[LessonUse]]:
        """What the tenant's own runs say of these, in the order in which they ended."""
        ...

    async def put(self, lesson: Lesson, *, unless: LessonStatus | None = None) -> bool:
        """Keeps another status, scope or date of one of the tenant's own lessons; whether there was such a one.

        One that has the status `unless` by now stays as it is.
        """
        ...

    async def told(self, lesson_id: str) -> ForgottenTexts | None:
        """What `forget` would give, with nothing removed. Raises as that does."""
        ...

    async def forget(self, lesson_id: str) -> ForgottenTexts | None:
        """Removes it with all that says the same and all uses; see `SqlCards.forget`."""
        ...


class Embedder(Protocol):
    """Gives texts their places in a space where alike ones lie close together."""

    @property
    def name(self) -> str:
        """The model and its version: places that two names gave are never compared. To be asked after `embed`."""
        ...

    @property
    def remote(self) -> bool:
        """Whether a model is asked for it elsewhere: that may cost something, and may fail."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has. To be asked after `embed`."""
        ...

    @property
    def near(self) -> float:
        """From which likeness (a cosine) on two failures are alike enough for one to help with the other."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """A vector of length 1 for each; all zeros for one that says nothing.

        Raises `ModelError` where its model gives none, `BudgetExceeded` where that could cost too much, `ConfigError`
        where it cannot be asked as it is set.
        """
        ...

    def under(self, meter: Meter) -> Embedder:
        """The same embedder, which holds with this meter what it may cost."""
        ...


@runtime_checkable
class GoalEmbedder(Embedder, Protocol):
    """One that goals can be compared by too."""

    @property
    def near_goals(self) -> float:
        """The same for two goals: from which likeness on the plan of one may help with the other."""
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
    """Who said that a card may be shown, and when; kept beside where the card comes from."""

    approved_by: str
    approved_at: str


class MemoryCounts(NamedTuple):
    """What memory holds, counted."""

    states: dict[str, int]
    """Cards by state."""
    repos: dict[str, int]
    """Cards by the repo they come from, the most first."""
    failures: int
    """Attempts that stayed red, of which what was tried is kept."""
    recalls: dict[str, frozenset[str]]
    """The runs that recalled a card, by its id, as far as those runs are still kept."""


class ForgottenTexts(NamedTuple):
    """What to look through where blobs are kept outside of the database."""

    texts: tuple[str, ...]
    """What the card, or lesson, said."""
    blobs: frozenset[str]
    """Those in which runs that made or saw it may have written that down."""
