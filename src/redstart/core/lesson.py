"""Lessons: short advice whose worth is measured by showing it to some runs and withholding it from others."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from redstart.core.noun import FrozenValue

LONGEST = 600
"""Characters of `when` and `advice` together."""
PREFIX = "lesson-"
"""With which the id of every lesson begins, and that of nothing else."""


class LessonScope(StrEnum):
    """Who is shown a lesson, the narrowest first. It widens only by a person's word."""

    repo = "repo"
    tenant = "tenant"
    everyone = "global"


class LessonStatus(StrEnum):
    new = "new"
    """Not yet known to help: as likely withheld as shown."""
    active = "active"
    """Known to help: mostly shown, withheld now and then so that it stays known."""
    retired = "retired"
    """Never shown again. A person may make it new, and its measuring begins anew."""
    quarantined = "quarantined"
    """Never shown before a person has looked at it."""


class Provenance(FrozenValue):
    """Where a lesson comes from."""

    repo: str
    commit: str
    run: str
    model: str
    outcome: str
    """How that run ended. Only a `verified` one may teach."""


class LessonOutcome(FrozenValue):
    """One run to which a lesson applied: what the coin said, and how the run ended. The unit is the run."""

    probability: float = Field(ge=0, le=1)
    """With which the lesson was to be shown, fixed before the coin fell."""
    shown: bool
    green: bool | None
    """None where the run says nothing of the lesson: it was flaky, broke off, or ended by trouble of the machine."""
    cost: float | None = Field(default=None, ge=0, le=1)
    """As a share of what the run might have cost at most; that bound is set before the run."""

    @property
    def counts(self) -> bool:
        """Whether something can be learned from it. Where there was no chance of the other side, there is nothing to
        compare with."""
        return self.green is not None and 0 < self.probability < 1


class LessonDraw(FrozenValue):
    """Whether one lesson was shown to one run."""

    lesson: str
    shown: bool
    probability: float = Field(ge=0, le=1)
    when: str = ""
    """Empty where it was withheld, and so is `advice`: what a run was not to see is not in it."""
    advice: str = ""
    taught_by: str = ""
    """The run that it comes from."""


class LessonDraws(FrozenValue):
    """The lessons that applied to a run, each shown or withheld, with the probability used."""

    coins: tuple[LessonDraw, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(coin.lesson for coin in self.coins if coin.shown)

    @property
    def withheld(self) -> tuple[str, ...]:
        return tuple(coin.lesson for coin in self.coins if not coin.shown)


class LessonCounts(FrozenValue):
    """What happened in the runs that count. For the eye: with probabilities that change, the bare difference of the
    two shares is not the worth."""

    shown: int = 0
    withheld: int = 0
    green_when_shown: int = 0
    green_when_withheld: int = 0

    def plus(self, use: LessonOutcome) -> LessonCounts:
        """With one more use; the same where it does not count."""
        if not use.counts:
            return self
        shown, green = int(use.shown), int(bool(use.green))
        return LessonCounts(
            shown=self.shown + shown,
            withheld=self.withheld + 1 - shown,
            green_when_shown=self.green_when_shown + shown * green,
            green_when_withheld=self.green_when_withheld + (1 - shown) * green,
        )


class Lesson(FrozenValue):
    """When something is so, do that. Data in a prompt, never an instruction to us."""

    id: str
    when: str
    advice: str
    family: str
    """The kind of bug it is about (`Signature.family`); empty where it is about words in a goal."""
    tenant: str
    repo: str
    scope: LessonScope = LessonScope.repo
    status: LessonStatus = LessonStatus.new
    reason: str = ""
    """Why it has its status, in the user's words."""
    provenance: Provenance
    sources: tuple[str, ...] = ()
    """Runs that taught the same again, after the first."""
    files: dict[str, str] = {}
    """What the run that taught it changed, each with the digest that it had then: if that code is another one now, the
    lesson is worth less."""
    made_at: float
    """Seconds since the epoch."""
    confirmed_at: float | None = None
    """When it was last taught again, made active, or approved."""
    measured_from: float | None = None
    """Uses before this moment do not count; None for all."""
    approved_by: str = ""
    """Who widened its scope, or let it out of quarantine."""
    same_as: str = ""
    """The lesson that said the same before it: this one is never shown, and tells only that it was taught again."""
    counts: LessonCounts = LessonCounts()

    @model_validator(mode="after")
    def _is_short(self) -> Lesson:
        if len(self.when) + len(self.advice) > LONGEST:
            raise ValueError(f"a lesson has at most {LONGEST} characters")
        return self


class Situation(FrozenValue):
    """What a run is about, as far as lessons are chosen by it."""

    tenant: str
    repo: str
    family: str = ""
    """Of the failure at hand; empty where there is none."""
    text: str = ""
    """The goal, or the failure in words."""


class LessonPlacement(FrozenValue):
    """What became of a proposed lesson: as it is to be kept, or why it is not."""

    lesson: Lesson | None = None
    refused: tuple[str, ...] = ()


class LessonOffer(FrozenValue):
    """Lessons that may apply, the best first, and the moment at which that was so."""

    lessons: tuple[Lesson, ...] = ()
    now: float = 0.0
    """Seconds since the epoch."""
