"""Show, approve and forget what runs have learned. The terminal and other programs use the same functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from redstart.app.prune import collect_reachable_blobs
from redstart.app.settings import Settings
from redstart.app.wire import (
    create_blob_store,
    create_card_store,
    create_edge_store,
    create_failure_store,
    create_lesson_store,
    mirror_to,
    open_database,
)
from redstart.core.errors import BlobMissing, ConfigError, StoreError
from redstart.core.frozen import FrozenValue
from redstart.core.graph import FailingFile, Graph, KnownFix, MirrorCounts, TypeInMonth, build_graph
from redstart.core.learning import CardState, FixCard
from redstart.core.lesson import Lesson
from redstart.ports.memory.port import Approval, ForgottenTexts, KeptCard
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.forget import TextTraces
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlFailures
from redstart.ports.store.port.blobs import SweptBlobs

VIEW_VERSION = 1
MAX_LISTED_CARDS = 10
"""The number of recalled cards to list."""
NAME_LIMIT = 100
MANUAL_FOLDER = "by-hand"
_STORE = ("redstart.db", "blobs", "snapshots", "tenants")
"""Entries of the data folder that are not searched as files: the store, other tenants' data and code snapshots."""


class TenantMemory(NamedTuple):
    """The opened memory of one tenant."""

    settings: Settings
    cards: SqlCards
    edges: SqlEdges
    lessons: SqlLessonStore
    blobs: SweptBlobs
    failures: SqlFailures


class CardView(FrozenValue):
    v: int = VIEW_VERSION
    id: str
    state: CardState
    repo: str
    created: datetime
    card: FixCard


class CardStory(CardView):
    recalled_by: tuple[str, ...]
    """The stored runs that were shown the card."""


class CardRecalls(FrozenValue):
    card: str
    runs: int


class MemoryStats(FrozenValue):
    v: int = VIEW_VERSION
    lessons: dict[str, int] = {}
    """Lessons by status."""
    cards: int
    states: dict[str, int]
    """Cards by state; `shown` may be recalled, `quarantined` may not."""
    repos: dict[str, int]
    failures: int
    """Failed attempts that are stored with what was tried."""
    recalled: int
    """Cards that a run has recalled. This and the following figures count only runs that are still stored."""
    recalling_runs: int
    often: tuple[CardRecalls, ...]


class Questions(NamedTuple):
    """The questions to ask the graph."""

    files: bool = False
    signature: str = ""
    """The key of a failure, or its beginning."""
    types: bool = False
    repo: str | None = None
    limit: int = 20


class GraphAnswers(FrozenValue):
    """The answers to the questions. A field is None if its question was not asked."""

    v: int = VIEW_VERSION
    files: tuple[FailingFile, ...] | None = None
    fixes: tuple[KnownFix, ...] | None = None
    types: tuple[TypeInMonth, ...] | None = None


class ForgetsByName(Protocol):
    """A store whose entries can be forgotten by name."""

    async def preview_forget(self, card_id: str, /) -> ForgottenTexts | None: ...
    async def forget(self, card_id: str, /) -> ForgottenTexts | None: ...


class ForgetReport(NamedTuple):
    """What was forgotten, and what was removed with it."""

    kind: str
    """What was forgotten: a fix card, a lesson or a failed attempt."""
    name: str
    blobs: int
    """The number of removed blobs of runs that contained its text."""
    notes: int
    """The number of removed questions and answers of a person who answered by hand."""
    remaining_files: tuple[Path, ...]
    """Other data files that contain the same text and were not removed: patches."""


@contextmanager
def open_memory(settings: Settings) -> Generator[TenantMemory]:
    """Open the memory of the settings' tenant. Raises `StoreError` if the store cannot be used."""
    with open_database(settings) as root_database:
        database = root_database.for_tenant(settings.tenant)
        blobs = create_blob_store(settings, database)
        stores = (create_card_store(database), create_edge_store(database), create_lesson_store(database))
        yield TenantMemory(settings, *stores, blobs, create_failure_store(database))


async def list_cards(memory: TenantMemory, *, repo: str | None = None, limit: int = 50) -> list[CardView]:
    """List fix cards, newest first."""
    return [_build_view(card) for card in await memory.cards.list_cards(repo=repo, limit=limit)]


async def show_card(memory: TenantMemory, prefix: str) -> CardStory:
    """Return a fix card and the runs that recalled it. Raises `ConfigError` if no card or several match the ID
    prefix."""
    stored_card = await _find(memory, prefix)
    recalls = (await memory.cards.count_memory()).recalls.get(stored_card.card.id, frozenset())
    return CardStory(**dict(_build_view(stored_card)), recalled_by=tuple(sorted(recalls)))


async def approve_card(memory: TenantMemory, prefix: str, *, approver: str, now: datetime) -> CardView:
    """Release a card from quarantine in a person's name, which is stored. Raises `ConfigError`, see `show_card`.

    A card that is not in quarantine stays unchanged.
    """
    name = normalize_approver(approver)
    stored_card = await _find(memory, prefix)
    if stored_card.state is CardState.quarantined:
        approved_at = now.astimezone(UTC).isoformat(timespec="seconds")
        await memory.cards.put(stored_card.card.id, CardState.shown, Approval(name, approved_at))
        stored_card = await _find(memory, stored_card.card.id)
    return _build_view(stored_card)


def normalize_approver(approver: str) -> str:
    """Return the approver's name with normalized spaces. Raises `ConfigError` if it is not a usable name."""
    name = " ".join(approver.split())
    if not name.isprintable() or not 0 < len(name) <= NAME_LIMIT:
        raise ConfigError(
            "the approver's name is empty or too long", remedy=f"--by NAME, at most {NAME_LIMIT} characters"
        )
    return name


async def forget_learned(memory: TenantMemory, prefix: str) -> ForgetReport:
    """Remove a fix card, or a failed attempt with exactly this ID, and erase its text from all stored data.

    Raises as `show_card` and `SqlCards.forget` do.
    """
    if not await memory.cards.find_ids(prefix, 1) and await memory.failures.preview_forget(prefix) is not None:
        return await forget_entry(memory, memory.failures, prefix, "failed attempt")
    return await forget_entry(memory, memory.cards, (await _find(memory, prefix)).card.id, "fix card")


async def forget_entry(memory: TenantMemory, store: ForgetsByName, name: str, kind: str) -> ForgetReport:
    """Remove the text from files, then the stored entry: after an interruption, the entry can be forgotten again."""
    forgotten_texts = await store.preview_forget(name)
    removed_count = _drop_blobs(memory.blobs, forgotten_texts) if forgotten_texts else 0
    files = list(_find_files_containing(memory.settings.home, forgotten_texts.texts)) if forgotten_texts else []
    manual_files = [file for file in files if file.is_relative_to(memory.settings.home / MANUAL_FOLDER)]
    for item in manual_files:
        item.unlink(missing_ok=True)
    removed_texts = await store.forget(name)
    if removed_texts is None:
        raise ConfigError(f"{name} no longer exists")
    removed_count += _drop_blobs(memory.blobs, removed_texts)
    return ForgetReport(
        kind, name, removed_count, len(manual_files), tuple(file for file in files if file not in manual_files)
    )


async def compute_memory_stats(memory: TenantMemory, lessons: Iterable[Lesson] = ()) -> MemoryStats:
    counts = await memory.cards.count_memory()
    most_recalled = sorted(counts.recalls.items(), key=lambda recall: (-len(recall[1]), recall[0]))[:MAX_LISTED_CARDS]
    return MemoryStats(
        lessons=dict(sorted(Counter(lesson.status.value for lesson in lessons).items())),
        cards=sum(counts.states.values()),
        states=counts.states,
        repos=counts.repos,
        failures=counts.failures,
        recalled=len(counts.recalls),
        recalling_runs=len(frozenset[str]().union(*counts.recalls.values())),
        often=tuple(CardRecalls(card=card, runs=len(run_ids)) for card, run_ids in most_recalled),
    )


async def ask_graph(memory: TenantMemory, questions: Questions) -> GraphAnswers:
    edges, repo, limit = memory.edges, questions.repo, questions.limit
    fixes = await edges.list_fixes(questions.signature, repo=repo, limit=limit) if questions.signature else None
    return GraphAnswers(
        files=tuple(await edges.list_files_in_failures(repo=repo, limit=limit)) if questions.files else None,
        fixes=None if fixes is None else tuple(fixes),
        types=tuple(await edges.count_bug_types(repo=repo, limit=limit)) if questions.types else None,
    )


async def load_graph(memory: TenantMemory, *, repo: str | None = None) -> Graph:
    """Load the graph of all runs of the tenant, or of those of one repo."""
    return build_graph(memory.settings.tenant, await memory.edges.list_edges(repo=repo))


async def mirror_graph(memory: TenantMemory, url: str, database: str, environ: Mapping[str, str]) -> MirrorCounts:
    """Update the copy of the tenant's graph in a graph database. Raises `ConfigError` without the extra `neo4j`."""
    return mirror_to(await load_graph(memory), url, database, environ)


async def _find(memory: TenantMemory, prefix: str) -> KeptCard:
    ids = await memory.cards.find_ids(prefix, 2) if prefix else []
    if len(ids) > 1 and ids[0] != prefix:
        raise ConfigError(f"the IDs of several fix cards begin with '{prefix}'", remedy="type more of the ID")
    stored_card = await memory.cards.get_card(ids[0]) if ids else None
    if stored_card is None:
        raise ConfigError(f"there is no fix card '{prefix}'", remedy="list them: redstart memory list")
    return stored_card


def _build_view(stored_card: KeptCard) -> CardView:
    return CardView(
        id=stored_card.card.id,
        state=stored_card.state,
        repo=stored_card.repo,
        created=stored_card.created,
        card=stored_card.card,
    )


def _drop_blobs(blobs: SweptBlobs, forgotten_texts: ForgottenTexts) -> int:
    """Remove the blobs, and the blobs that they name, that contain the forgotten text. Return their number."""
    traces = TextTraces(forgotten_texts.texts)
    blob_names: list[str] = []
    for name in sorted(collect_reachable_blobs(forgotten_texts.blobs, blobs)):
        with suppress(BlobMissing):
            if traces.has_match(blobs.get(name)):
                blob_names.append(name)
    blobs.drop(blob_names, math.inf)
    if remaining := {item.name for item in blobs.list_blobs()}.intersection(blob_names):
        raise StoreError(
            f"blob {min(remaining)} quotes the text to forget and cannot be removed",
            remedy="check its owner and permissions, then run the command again",
        )
    return len(blob_names)


def _find_files_containing(home: Path, texts: Iterable[str]) -> Iterator[Path]:
    """Yield the files of `home` outside of the store that contain these texts."""
    traces = TextTraces(texts)
    parts = [item for item in home.iterdir() if not item.name.startswith(_STORE)] if home.is_dir() else []
    for path in (file for part in parts for file in ([part] if part.is_file() else sorted(part.rglob("*")))):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and traces.has_match(path.read_bytes()):
                yield path
