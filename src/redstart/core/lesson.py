"""Lessons: short advice whose effect is measured by showing it to some runs and withholding it from others."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from redstart.core.frozen import FrozenValue

LONGEST = 600
"""Maximum characters of `when` and `advice` together."""
PREFIX = "lesson-"
"""Prefix of the ID of every lesson, and of no other ID."""


class LessonScope(StrEnum):
    """Who is shown a lesson, narrowest first. Only a person can widen it."""

    repo = "repo"
    tenant = "tenant"
    everyone = "global"


class LessonStatus(StrEnum):
    new = "new"
    """Not yet known to help: shown and withheld with equal probability."""
    active = "active"
    """Known to help: mostly shown, and sometimes withheld so that the effect stays measured."""
    retired = "retired"
    """Never shown again. A person may make it new, which restarts its measurement."""
    quarantined = "quarantined"
    """Not shown until a person has reviewed it."""


class Provenance(FrozenValue):
    """Where a lesson comes from."""

    repo: str
    commit: str
    run: str
    model: str
    outcome: str
    """How that run ended. Only a `verified` run may teach."""


class LessonOutcome(FrozenValue):
    """One run to which a lesson applied: the draw, and how the run ended. The unit is the run."""

    probability: float = Field(ge=0, le=1)
    """Probability of showing the lesson, fixed before the draw."""
    shown: bool
    green: bool | None
    """None if the run says nothing about the lesson: it was flaky, was interrupted, or had an environment problem."""
    cost: float | None = Field(default=None, ge=0, le=1)
    """Share of the run's cost limit, which is set before the run."""

    @property
    def counts(self) -> bool:
        """Whether the run counts for the measurement. If the draw could have only one outcome, there is nothing to
        compare with."""
        return self.green is not None and 0 < self.probability < 1


class LessonDraw(FrozenValue):
    """Whether one lesson was shown to one run."""

    lesson: str
    shown: bool
    probability: float = Field(ge=0, le=1)
    when: str = ""
    """Empty if the lesson was withheld, as is `advice`: a withheld text is not in the run."""
    advice: str = ""
    taught_by: str = ""
    """The run that the lesson comes from."""


class LessonDraws(FrozenValue):
    """The lessons that applied to a run, each shown or withheld, with its probability."""

    coins: tuple[LessonDraw, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(coin.lesson for coin in self.coins if coin.shown)

    @property
    def withheld(self) -> tuple[str, ...]:
        return tuple(coin.lesson for coin in self.coins if not coin.shown)


class LessonCounts(FrozenValue):
    """The outcomes of the runs that count, for display. The probabilities change, so the plain difference of the two
    shares is not the lesson effect."""

    shown: int = 0
    withheld: int = 0
    green_when_shown: int = 0
    green_when_withheld: int = 0

    def add(self, use: LessonOutcome) -> LessonCounts:
        """Return the counts with one more outcome; unchanged if it does not count."""
        if not use.counts:
            return self
        shown_count, green_count = int(use.shown), int(bool(use.green))
        return LessonCounts(
            shown=self.shown + shown_count,
            withheld=self.withheld + 1 - shown_count,
            green_when_shown=self.green_when_shown + shown_count * green_count,
            green_when_withheld=self.green_when_withheld + (1 - shown_count) * green_count,
        )


class Lesson(FrozenValue):
    """Advice for a situation: when this, do that. In a prompt it is data, never an instruction to us."""

    id: str
    when: str
    advice: str
    family: str
    """The kind of bug that it is about (`Signature.family`); empty if it is about words in a goal."""
    tenant: str
    repo: str
    scope: LessonScope = LessonScope.repo
    status: LessonStatus = LessonStatus.new
    reason: str = ""
    """Why the lesson has its status, in the user's words."""
    provenance: Provenance
    sources: tuple[str, ...] = ()
    """Later runs that taught the same lesson."""
    files: dict[str, str] = {}
    """The files that the teaching run changed, each with its digest at that time. If the code has changed since, the
    lesson is worth less."""
    made_at: float
    """Seconds since the epoch."""
    confirmed_at: float | None = None
    """When the lesson was last taught again, made active, or approved."""
    measured_from: float | None = None
    """Outcomes before this time do not count; None if all count."""
    approved_by: str = ""
    """Who widened the scope, or released the lesson from quarantine."""
    same_as: str = ""
    """The earlier lesson with the same content. This one is never shown; it only records that it was taught again."""
    counts: LessonCounts = LessonCounts()

    @model_validator(mode="after")
    def _is_short(self) -> Lesson:
        if len(self.when) + len(self.advice) > LONGEST:
            raise ValueError(f"a lesson has at most {LONGEST} characters")
        return self


class Situation(FrozenValue):
    """What a run is about, for the choice of lessons."""

    tenant: str
    repo: str
    family: str = ""
    """Family of the current failure; empty if there is none."""
    text: str = ""
    """The goal, or a description of the failure."""


class LessonPlacement(FrozenValue):
    """What happens to a proposed lesson: the lesson to store, or why it is refused."""

    lesson: Lesson | None = None
    refused: tuple[str, ...] = ()


class LessonOffer(FrozenValue):
    """Lessons that may apply, best first, and the time of the offer."""

    lessons: tuple[Lesson, ...] = ()
    now: float = 0.0
    """Seconds since the epoch."""
