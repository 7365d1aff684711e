"""The store, the journal, memory and blobs without a disk."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import mul
from typing import Generic, TypeVar

from redstart.core.change import EditKind, EditRung, Tally
from redstart.core.errors import BlobMissing, Fenced, StoreError
from redstart.core.events import Event, Phase
from redstart.core.failures import FailureQuery, RecalledFailure, choose_failures
from redstart.core.graph import edges_of
from redstart.core.learning import CardState, Edge, FailureRecord, FixCard, Recalled, Signature, likeness
from redstart.core.lesson import Lesson, Scope
from redstart.core.lesson import Status as LessonStatus
from redstart.core.pattern import Pattern, RecalledPattern, goal_words
from redstart.core.run import Result, RunState, Status, Step
from redstart.core.run_options import RunOptions
from redstart.core.standing import Control, Holder, RunRow, Stop
from redstart.core.uses import uses_of
from redstart.ports.memory.port import Forgotten, GoalEmbedder, LessonUse
from redstart.ports.store.port.journal import Call, Record
from redstart.ports.store.port.runs import Claim, Commit, Past, StepRow, Told, Word
from support.kept_run import KeptRun

T = TypeVar("T", FixCard, FailureRecord, Lesson, Pattern)


@dataclass(frozen=True)
class Learned(Generic[T]):
    what: T
    tenant: str
    repo: str
    created: float
    run_id: str


@dataclass(frozen=True)
class KeptEdits:
    """What became of the edits of one answer."""

    tenant: str
    model: str
    rungs: tuple[EditRung, ...]


@dataclass
class MemoryDatabase:
    """What the fakes below share, open to a test's eyes."""

    runs: dict[str, KeptRun] = field(default_factory=dict[str, KeptRun])
    journal: dict[Call, Record] = field(default_factory=dict[Call, Record])
    cards: dict[tuple[str, int], Learned[FixCard]] = field(default_factory=dict[tuple[str, int], Learned[FixCard]])
    failures: dict[tuple[str, int], Learned[FailureRecord]] = field(
        default_factory=dict[tuple[str, int], Learned[FailureRecord]]
    )
    lessons: dict[tuple[str, int], Learned[Lesson]] = field(default_factory=dict[tuple[str, int], Learned[Lesson]])
    uses: dict[str, dict[str, LessonUse]] = field(default_factory=dict[str, dict[str, LessonUse]])
    """By lesson and run."""
    patterns: dict[tuple[str, int], Learned[Pattern]] = field(default_factory=dict[tuple[str, int], Learned[Pattern]])
    edits: dict[tuple[str, int], KeptEdits] = field(default_factory=dict[tuple[str, int], KeptEdits])
    edges: dict[tuple[str, int], tuple[Edge, ...]] = field(default_factory=dict[tuple[str, int], tuple[Edge, ...]])
    quarantined: set[str] = field(default_factory=set[str])
    """Ids of cards and patterns."""
    tenant: str = "home"
    others: dict[str, MemoryDatabase] = field(default_factory=dict[str, "MemoryDatabase"])

    def of(self, tenant: str) -> MemoryDatabase:
        """The same database as this tenant sees it: nothing of what another one keeps."""
        self.others.setdefault(self.tenant, self)
        return self.others.setdefault(tenant, MemoryDatabase(tenant=tenant, others=self.others))

    def run(self, run_id: str) -> KeptRun:
        if run_id not in self.runs:
            raise StoreError(f"there is no run {run_id}")
        return self.runs[run_id]

    def held(self, run_id: str, fence: int) -> KeptRun:
        run = self.runs.get(run_id)
        if run is None or run.fence != fence:
            raise Fenced
        return run


class MemoryStore:
    def __init__(self, database: MemoryDatabase, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._now = now

    async def create(
        self, state: RunState, *, folder: str, created: datetime, options: RunOptions | None = None
    ) -> None:
        if state.spec.tenant != self._database.tenant:
            raise StoreError(f"run {state.run_id} is of tenant {state.spec.tenant}")
        if state.run_id in self._database.runs:
            raise StoreError(f"there is a run {state.run_id} already")
        moment = created.astimezone(UTC)
        self._database.runs[state.run_id] = KeptRun(state, state, folder, moment, moment, options=options)

    async def claim(self, run_id: str) -> Claim:
        run = self._database.run(run_id)
        run.fence += 1
        run.holder, run.beat, run.stop = Holder(platform.node(), os.getpid()), self._now(), None
        return Claim(run.state, run.fence)

    async def renew(self, run_id: str, fence: int) -> None:
        run = self._database.runs.get(run_id)
        if run is not None and run.fence == fence:
            run.beat = self._now()

    async def release(self, run_id: str, fence: int, stop: Stop | None = None) -> None:
        run = self._database.runs.get(run_id)
        if run is not None and run.fence == fence:
            run.holder, run.stop = None, stop

    async def mark(self, run_id: str, stop: Stop) -> None:
        run = self._database.runs.get(run_id)
        if run is not None and run.holder is None:
            run.stop = stop

    async def choose(self, run_id: str, options: RunOptions) -> None:
        self._database.run(run_id).options = options

    async def holder(self, run_id: str) -> Holder | None:
        run = self._database.runs.get(run_id)
        return None if run is None else run.holder

    async def commit(self, commit: Commit, fence: int) -> Control:
        before, after, now = commit.before, commit.after, self._now()
        run = self._database.held(before.run_id, fence)
        if run.state.version != before.version:
            raise Fenced
        events = {event.seq: event for event in commit.events}
        if len(events) < len(commit.events) or events.keys() & run.events.keys():
            raise StoreError("an event was committed already")
        if commit.remembered is not None:
            _keep(self._database.cards, commit.remembered.card, before, now)
            _keep(self._database.failures, commit.remembered.failure, before, now)
            _keep(self._database.lessons, commit.remembered.lesson, before, now)
            _keep(self._database.patterns, commit.remembered.pattern, before, now)
            self._database.edges.setdefault((before.run_id, before.now.number), edges_of(before, commit.remembered))
            left = commit.remembered.card
            if left is not None and left.state is CardState.quarantined:
                self._database.quarantined.add(left.id)
            shaped = commit.remembered.pattern
            if shaped is not None and shaped.outcome != Result.verified:
                self._database.quarantined.add(shaped.id)
        if commit.edits and commit.model:
            answered = KeptEdits(before.spec.tenant, commit.model, commit.edits)
            self._database.edits.setdefault((before.run_id, before.now.number), answered)
        if after.status is Status.finished and after.result is not Result.verified:
            every = (*self._database.cards.values(), *self._database.patterns.values())
            mine = (one.what.id for one in every if one.run_id == before.run_id)
            self._database.quarantined.update(mine)
            for key, one in self._database.lessons.items():
                if one.run_id == before.run_id:
                    kept = one.what.model_copy(update={"status": LessonStatus.quarantined})
                    self._database.lessons[key] = replace(one, what=kept)
        for name, use in uses_of(after).items():
            self._database.uses.setdefault(name, {}).setdefault(before.run_id, LessonUse(use, now))
        run.state, run.updated = after, datetime.fromtimestamp(now, UTC)
        run.steps.append(StepRow(after.version, before.now.number, commit.step, commit.artifact, after))
        run.events.update(events)
        return run.control

    async def load(self, run_id: str) -> RunState:
        return self._database.run(run_id).state

    async def first(self, run_id: str) -> RunState:
        return self._database.run(run_id).first

    async def steps(self, run_id: str) -> list[StepRow]:
        run = self._database.runs.get(run_id)
        return [] if run is None else list(run.steps)

    async def events(self, run_id: str, after: int = -1) -> list[Event]:
        run = self._database.runs.get(run_id)
        return [] if run is None else [event for seq, event in sorted(run.events.items()) if seq > after]

    async def runs(
        self, *, folder: str | None = None, prefix: str = "", limit: int = 50, errands: bool = False
    ) -> list[RunRow]:
        rows = [
            run.row
            for run_id, run in self._database.runs.items()
            if run_id.startswith(prefix)
            and folder in (None, run.folder)
            and (errands or "." in prefix or "." not in run_id)
        ]
        rows.sort(key=lambda row: (row.created, row.run_id), reverse=True)
        return rows[:limit]

    async def past(self, since: datetime | None = None) -> AsyncIterator[Past]:
        journal = MemoryJournal(self._database)
        for row in reversed(await self.runs(limit=len(self._database.runs), errands=True)):
            if since is None or row.created >= since:
                ends = [one for one in await self.events(row.run_id) if one.phase is Phase.end]
                reproduced = [one.artifact for one in await self.steps(row.run_id) if one.step is Step.reproduce]
                answers = [one for one in await journal.records(row.run_id) if one.kind == "model"]
                yield Past(row, ends, reproduced, answers)

    async def control(self, run_id: str, control: Control) -> None:
        self._database.run(run_id).control = control

    async def asked(self, run_id: str) -> Control:
        return self._database.run(run_id).control

    async def tell(self, run_id: str, word: Word, text: str, *, version: int) -> None:
        moment = datetime.fromtimestamp(self._now(), UTC)
        self._database.run(run_id).told.append(Told(word, text, version, moment))

    async def told(self, run_id: str) -> list[Told]:
        run = self._database.runs.get(run_id)
        return [] if run is None else list(run.told)

    async def tally(self, model: str, *, tenant: str) -> dict[EditKind, Tally]:
        counts: dict[EditKind, Tally] = {}
        for answer in self._database.edits.values():
            if (answer.model, answer.tenant) == (model, tenant):
                for one in answer.rungs:
                    fitted, tried = counts.get(one.kind, Tally())
                    counts[one.kind] = Tally(fitted + (one.rung is not None), tried + 1)
        return counts


def _keep(kept: dict[tuple[str, int], Learned[T]], what: T | None, run: RunState, now: float) -> None:
    key = (run.run_id, run.now.number)
    if what is None or key in kept:
        return
    if any(one.what.id == what.id for one in kept.values()):
        raise StoreError(f"the id {what.id} is taken")
    kept[key] = Learned(what, run.spec.tenant, run.spec.repo, now, run.run_id)


class MemoryJournal:
    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def find(self, call: Call) -> Record | None:
        return self._database.journal.get(call)

    async def add(self, record: Record, fence: int) -> None:
        self._database.held(record.call.run_id, fence)
        if record.call in self._database.journal:
            raise StoreError(f"{record.call} of run {record.call.run_id} is recorded already")
        self._database.journal[record.call] = record

    async def discard(self, call: Call, fence: int) -> int:
        self._database.held(call.run_id, fence)
        gone = [one for one in self._database.journal if one[:3] == call[:3] and one.ordinal >= call.ordinal]
        for one in gone:
            del self._database.journal[one]
        return len(gone)

    async def records(self, run_id: str) -> list[Record]:
        every = [record for call, record in self._database.journal.items() if call.run_id == run_id]
        return sorted(every, key=lambda record: record.call.attempt)


class MemoryMemory:
    def __init__(self, database: MemoryDatabase, embedder: GoalEmbedder | None = None) -> None:
        self._database, self._embedder = database, embedder

    async def recall(self, signature: Signature, *, tenant: str, repo: str, limit: int = 3) -> list[Recalled]:
        kept = self._database
        mine = [one for one in kept.cards.values() if one.tenant == tenant and one.what.id not in kept.quarantined]
        alike = await self._alike(signature, [one.what for one in mine])
        mine.sort(
            key=lambda one: (one.repo == repo, round(alike[one.what.id], 2), one.created, one.what.id), reverse=True
        )
        same = [one.what for one in mine if one.what.error_signature == signature.key]
        kind = [one.what for one in mine if one.what.family == signature.family and one.what not in same]
        found = [Recalled(card=card, score=1.0, source="signature") for card in same]
        found += [Recalled(card=card, score=0.5, source="family") for card in kind]
        mine.sort(key=lambda one: (one.repo == repo, alike[one.what.id]), reverse=True)
        least = self._embedder.near if self._embedder else 2.0
        found += [
            Recalled(card=one.what, score=round(alike[one.what.id] / 2, 4), source="likeness")
            for one in mine
            if alike[one.what.id] >= least and one.what not in same and one.what not in kind
        ]
        return found[:limit]

    async def patterns(self, goal: str, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledPattern]:
        kept, embedder = self._database, self._embedder
        mine = [one for one in kept.patterns.values() if one.tenant == tenant and one.what.id not in kept.quarantined]
        if embedder is None:
            return []
        newest = {(one.repo, one.what.key): one for one in sorted(mine, key=lambda one: (one.created, one.what.id))}
        of, *places = await embedder.embed([goal_words(goal), *(one.what.likeness for one in newest.values())])
        alike = [(sum(map(mul, of, place)), one) for one, place in zip(newest.values(), places, strict=True)]
        alike.sort(
            key=lambda one: (round(one[0], 2), one[1].repo == repo, one[1].created, one[1].what.id), reverse=True
        )
        near = [(share, one) for share, one in alike if share >= embedder.near_goals]
        return [RecalledPattern(pattern=one.what, likeness=round(share, 4)) for share, one in near[:limit]]

    async def failures(self, query: FailureQuery, *, tenant: str, repo: str, limit: int = 3) -> list[RecalledFailure]:
        mine = [one for one in self._database.failures.values() if one.tenant == tenant]
        mine.sort(key=lambda one: (one.created, one.what.id), reverse=True)
        others = [(one.what, one.repo) for one in mine if one.run_id not in query.without]
        return choose_failures(others, query, repo=repo, limit=limit)

    async def _alike(self, signature: Signature, cards: list[FixCard]) -> dict[str, float]:
        """The likeness of each, by its id."""
        if self._embedder is None:
            return {card.id: 0.0 for card in cards}
        of, *places = await self._embedder.embed([likeness(signature), *(card.likeness for card in cards)])
        return {card.id: sum(map(mul, of, place)) for card, place in zip(cards, places, strict=True)}


class MemoryShelf:
    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    async def lessons(self) -> list[Lesson]:
        own = [(one.created, one.what) for one in self._database.lessons.values()]
        all_of = {id(one): one for one in (self._database, *self._database.others.values())}.values()
        open_ones = [(one.created, one.what) for other in all_of for one in other.lessons.values()]
        wide = [pair for pair in open_ones if pair[1].scope is Scope.everyone and pair not in own]
        return [lesson for _, lesson in sorted([*own, *wide], key=lambda pair: (pair[0], pair[1].id))]

    async def uses(self, lesson_ids: Sequence[str]) -> dict[str, list[LessonUse]]:
        return {name: list(self._database.uses.get(name, {}).values()) for name in lesson_ids}

    async def put(self, lesson: Lesson, *, unless: LessonStatus | None = None) -> bool:
        for key, kept in self._database.lessons.items():
            if kept.what.id == lesson.id and kept.what.status is not unless:
                self._database.lessons[key] = replace(kept, what=lesson)
                return True
        return False

    async def told(self, lesson_id: str) -> Forgotten | None:
        told = [one.what for one in self._database.lessons.values() if lesson_id in (one.what.id, one.what.same_as)]
        return Forgotten(tuple(text for one in told for text in (one.when, one.advice)), frozenset()) if told else None

    async def forget(self, lesson_id: str) -> Forgotten | None:
        told = await self.told(lesson_id)
        kept = {key: one.what for key, one in self._database.lessons.items()}
        gone = {key: one for key, one in kept.items() if lesson_id in (one.id, one.same_as)}
        for key, lesson in gone.items():
            del self._database.lessons[key]
            self._database.uses.pop(lesson.id, None)
        return told


class MemoryBlobs:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.kept[name] = data
        return name

    def get(self, name: str) -> bytes:
        if name not in self.kept:
            raise BlobMissing(f"blob {name} is missing")
        if hashlib.sha256(self.kept[name]).hexdigest() != name:
            raise StoreError(f"blob {name} is damaged: its bytes are not what was put")
        return self.kept[name]
