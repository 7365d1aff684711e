"""Lessons with what their runs so far have earned them: offered to a run, placed when one is proposed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from redstart.core.lesson import Counts, Lesson, Offered, Placed, Situation, Status
from redstart.ports.memory.port import LessonUse, Shelf
from redstart.toolkit.learning.lesson_text import refusals
from redstart.toolkit.learning.lessons import applying, duplicate_of, merged
from redstart.toolkit.learning.worth import Evidence, Pooled, Worth, pooled, spent, standing

OFFERED = 20
"""Lessons that are offered for one situation: more than a run takes, as changes of the code may put some back."""
WIDE = 100_000
"""Characters: no limit, as the run itself sees to what fits."""

Uses = Mapping[str, Sequence[LessonUse]]


class Advisor:
    """Stands between the shelf and the runs. `now` gives seconds since the epoch."""

    def __init__(self, shelf: Shelf, now: Callable[[], float], has_secret: Callable[[str], bool]) -> None:
        self._shelf, self._now, self._has_secret = shelf, now, has_secret

    async def offered(self, situation: Situation) -> Offered:
        now = self._now()
        lessons = applying(await self.judged(), situation, now, most=OFFERED, room=WIDE)
        return Offered(lessons=tuple(lessons), now=now)

    async def placed(self, lesson: Lesson) -> Placed:
        reasons = refusals(lesson.when, lesson.advice, lesson.provenance, self._has_secret)
        if reasons:
            return Placed(refused=reasons)
        same = duplicate_of(lesson, [one for one in await self._shelf.lessons() if not one.same_as])
        kept = lesson.model_copy(update={"made_at": self._now(), "same_as": same.id if same else ""})
        return Placed(lesson=kept)

    async def judged(self) -> list[Lesson]:
        """All lessons, those that say the same put together, with their counts and the status that they have by now.

        A status that has changed is kept, with its reason.
        """
        lessons = gathered(await self._shelf.lessons())
        uses = await self._shelf.uses([lesson.id for lesson in lessons])
        green = {lesson.id: evidence_of(lesson, uses) for lesson in lessons}
        found: list[Lesson] = []
        for lesson in lessons:
            counted = lesson.model_copy(update={"counts": counts_of(lesson, uses)})
            kin = [green[one.id] for one in lessons if one.id != lesson.id and one.family == lesson.family]
            stands = standing(lesson.status, green[lesson.id], cost=evidence_of(lesson, uses, cost=True), family=kin)
            if stands.status is not lesson.status:
                counted = await self._kept(counted, stands.status, stands.reason)
            found.append(counted)
        return found

    async def _kept(self, lesson: Lesson, status: Status, reason: str) -> Lesson:
        confirmed = {"confirmed_at": self._now()} if status is Status.active else {}
        changed = lesson.model_copy(update={"status": status, "reason": reason, **confirmed})
        # A run that is refused while this is read puts what it taught into quarantine, and there it stays.
        await self._shelf.put(changed.model_copy(update={"counts": Counts()}), unless=Status.quarantined)
        return changed

    async def measured(self, lesson: Lesson) -> tuple[Worth, Pooled]:
        """What it is worth by its own runs alone, and with its family in mind."""
        lessons = [one for one in gathered(await self._shelf.lessons()) if one.family == lesson.family]
        uses = await self._shelf.uses([one.id for one in lessons])
        own = evidence_of(lesson, uses)
        return own.worth(), pooled(own, [evidence_of(one, uses) for one in lessons if one.id != lesson.id])


def gathered(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Each lesson once, with the runs that taught the same again as far as those were verified."""
    first: dict[str, Lesson] = {}
    for lesson in lessons:
        if not lesson.same_as:
            first[lesson.id] = lesson
        elif lesson.same_as in first and lesson.status is not Status.quarantined:
            first[lesson.same_as] = merged(first[lesson.same_as], lesson)
    return list(first.values())


def _counting(lesson: Lesson, uses: Uses) -> list[LessonUse]:
    since = lesson.measured_from or 0.0
    return [one for one in uses.get(lesson.id, ()) if one.at >= since]


def counts_of(lesson: Lesson, uses: Uses) -> Counts:
    counts = Counts()
    for one in _counting(lesson, uses):
        counts = counts.plus(one.use)
    return counts


def evidence_of(lesson: Lesson, uses: Uses, *, cost: bool = False) -> Evidence:
    return Evidence([one.use for one in _counting(lesson, uses)], outcome=spent if cost else None)
