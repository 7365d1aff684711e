"""The three arms: what a run receives from earlier runs.

`off` gives nothing. `on` works as in everyday use, except that the bench stands in for the person who approves lessons
beyond their repo: each lesson is approved for the tenant before the next run is offered any. `placebo` gives, run by
run, as many lessons and cards as `on` gave, of the same length and with the same chances, but with the words of a
family that is neither theirs nor the task's. The runs have the same IDs in all arms, so that the coins fall the same.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from learning.families import FAMILIES, Known, read_family
from redstart.core.failures import FailureQuery, RecalledFailure
from redstart.core.learning import RecalledCard, Signature
from redstart.core.lesson import Lesson, LessonOffer, LessonPlacement, LessonScope, Situation
from redstart.ports.memory.port import Lessons, LessonStore, Memory
from redstart.ports.world.system import SystemWorld
from redstart.toolkit.learning.lessons import create_approved_lesson

BY = "the bench, which stands for a person"


class Arm(StrEnum):
    off = "off"
    on = "on"
    placebo = "placebo"


class SeededWorld(SystemWorld):
    """A world whose run IDs are the same each time and in each arm; set `task` before a run begins."""

    def __init__(self, folder: Path, seed: int) -> None:
        """`folder` records the used IDs, so that none is used twice."""
        self._folder, self._seed = folder, seed
        self.task = ""

    def generate_id(self) -> str:
        name = hashlib.sha256(f"{self._seed}/{self.task}".encode()).hexdigest()[:12]
        self._folder.mkdir(parents=True, exist_ok=True)
        while (self._folder / name).exists():
            name += "b"
        (self._folder / name).touch()
        return name


class Given:
    """The lessons and cards that an arm gave, by repo; in a file, for another arm and for later processes."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, kind: str, repo: str, body: object) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "repo": repo, "body": body}) + "\n")

    def get_last(self, kind: str, repo: str) -> Any:
        """Return what was last given in the repo; None if nothing was."""
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        rows = (json.loads(line) for line in reversed(lines))
        return next((row["body"] for row in rows if (row["kind"], row["repo"]) == (kind, repo)), None)


class Widening:
    """Lessons of the store, each approved for the tenant as soon as it exists."""

    def __init__(self, lessons: Lessons, shelf: LessonStore, clock: Callable[[], float], record: Given) -> None:
        self._lessons, self._shelf, self._now, self._given = lessons, shelf, clock, record

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        for lesson in await self._shelf.list_lessons():
            if lesson.scope is LessonScope.repo and not lesson.same_as:
                await self._shelf.put(create_approved_lesson(lesson, BY, self._now(), LessonScope.tenant))
        offer = await self._lessons.offer_lessons(situation)
        self._given.add("lessons", situation.repo, offer.model_dump(mode="json"))
        return offer

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        return await self._lessons.place_lesson(lesson)


class Told:
    """A memory that records the cards it gives."""

    def __init__(self, memory: Memory, record: Given) -> None:
        self._memory, self._given = memory, record

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        recalled = await self._memory.recall(signature, tenant=tenant, repo=repo, limit=limit)
        self._given.add("cards", repo, [item.model_dump(mode="json") for item in recalled])
        return recalled

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        """Return nothing: this bench is about cards and lessons."""
        del query, tenant, repo, limit
        return []


class OtherWords:
    """The words of a random family that is neither of two given families."""

    def __init__(self, tasks: Sequence[Known]) -> None:
        self._by_repo = {entry.task.slug: entry.family.name for entry in tasks}
        self._families = [read_family(name) for name in FAMILIES]

    def replace_text(self, text: str, teacher: str, repo: str) -> str:
        """Replace `text`, left by a run of the repo `teacher`, with other words of the same length.

        The result is the same for the same text and repos.
        """
        excluded = (self._by_repo.get(teacher), self._by_repo.get(repo))
        candidates = [family for family in self._families if family.name not in excluded]
        advice = random.Random(f"{text}/{teacher}/{repo}").choice(candidates).advice
        return " ".join([advice] * (len(text) // len(advice) + 1))[: len(text)]


class PlaceboLessons:
    """As many lessons as the other arm was offered, with the same chances, but with advice about something else."""

    def __init__(self, record: Given, other_words: OtherWords) -> None:
        self._given, self._words = record, other_words

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        body = self._given.get_last("lessons", situation.repo)
        offer = LessonOffer.model_validate(body) if body else LessonOffer()
        return offer.model_copy(
            update={"lessons": tuple(self._replace_lesson(lesson, situation) for lesson in offer.lessons)}
        )

    def _replace_lesson(self, lesson: Lesson, situation: Situation) -> Lesson:
        # A lesson is chosen by its `when`, which therefore stays, and by its tenant, which becomes that of the arm.
        advice = self._words.replace_text(lesson.advice, lesson.provenance.repo, situation.repo)
        return lesson.model_copy(update={"advice": advice, "tenant": situation.tenant})

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        del lesson
        return LessonPlacement()


class PlaceboMemory:
    """As many cards as the other arm received, about something else."""

    def __init__(self, record: Given, other_words: OtherWords) -> None:
        self._given, self._words = record, other_words

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledCard]:
        del signature, tenant
        recalled = [RecalledCard.model_validate(body) for body in self._given.get_last("cards", repo) or ()]
        return [self._replace_card(item, repo) for item in recalled[:limit]]

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        del query, tenant, repo, limit
        return []

    def _replace_card(self, recalled: RecalledCard, repo: str) -> RecalledCard:
        card = recalled.card
        texts = {"summary": card.summary, "root_cause": card.root_cause, "fix": card.fix}
        teacher = card.provenance.get("repo", "")
        update: Mapping[str, str] = {
            name: self._words.replace_text(text, teacher, repo) for name, text in texts.items()
        }
        return recalled.model_copy(update={"card": card.model_copy(update=update)})
