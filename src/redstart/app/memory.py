"""Show, approve and forget what runs have learned. The terminal and other programs use the same functions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from redstart.app.prune import closed
from redstart.app.settings import Settings
from redstart.app.wire import blobs_of, cards_of, edges_of, failures_of, mirror_to, open_database, shelf_of
from redstart.core.errors import BlobMissing, ConfigError, StoreError
from redstart.core.graph import FailingFile, Graph, KnownFix, MirrorCounts, TypeInMonth, graph_of
from redstart.core.learning import CardState, FixCard
from redstart.core.lesson import Lesson
from redstart.core.noun import FrozenValue
from redstart.ports.memory.port import Approval, ForgottenTexts, KeptCard
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.edges import SqlEdges
from redstart.ports.sql.forget import TextTraces
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.ports.sql.memory import SqlFailures
from redstart.ports.store.port.blobs import SweptBlobs

VIEW_VERSION = 1
OFTEN = 10
"""The number of recalled cards to list."""
NAME_LIMIT = 100
BY_HAND = "by-hand"
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

    async def told(self, card_id: str, /) -> ForgottenTexts | None: ...
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
    left: tuple[Path, ...]
    """Other data files that contain the same text and were not removed: patches."""


@contextmanager
def open_memory(settings: Settings) -> Generator[TenantMemory]:
    """Open the memory of the settings' tenant. Raises `StoreError` if the store cannot be used."""
    with open_database(settings) as opened:
        database = opened.of(settings.tenant)
        blobs = blobs_of(settings, database)
        learned = (cards_of(database), edges_of(database), shelf_of(database))
        yield TenantMemory(settings, *learned, blobs, failures_of(database))


async def list_cards(shelf: TenantMemory, *, repo: str | None = None, limit: int = 50) -> list[CardView]:
    """List fix cards, newest first."""
    return [_view(card) for card in await shelf.cards.cards(repo=repo, limit=limit)]


async def show_card(shelf: TenantMemory, given: str) -> CardStory:
    """Return a fix card and the runs that recalled it. Raises `ConfigError` if no card or several match the ID
    prefix."""
    kept = await _find(shelf, given)
    recalls = (await shelf.cards.holdings()).recalls.get(kept.card.id, frozenset())
    return CardStory(**dict(_view(kept)), recalled_by=tuple(sorted(recalls)))


async def approve_card(shelf: TenantMemory, given: str, *, by: str, now: datetime) -> CardView:
    """Release a card from quarantine in a person's name, which is stored. Raises `ConfigError`, see `show_card`.

    A card that is not in quarantine stays unchanged.
    """
    name = signed(by)
    kept = await _find(shelf, given)
    if kept.state is CardState.quarantined:
        when = now.astimezone(UTC).isoformat(timespec="seconds")
        await shelf.cards.put(kept.card.id, CardState.shown, Approval(name, when))
        kept = await _find(shelf, kept.card.id)
    return _view(kept)


def signed(by: str) -> str:
    """Return the approver's name with normalized spaces. Raises `ConfigError` if it is not a usable name."""
    name = " ".join(by.split())
    if not name.isprintable() or not 0 < len(name) <= NAME_LIMIT:
        raise ConfigError(
            "the approver's name is empty or too long", remedy=f"--by NAME, at most {NAME_LIMIT} characters"
        )
    return name


async def forget_learned(shelf: TenantMemory, given: str) -> ForgetReport:
    """Remove a fix card, or a failed attempt with exactly this ID, and erase its text from all stored data.

    Raises as `show_card` and `SqlCards.forget` do.
    """
    if not await shelf.cards.beginning(given, 1) and await shelf.failures.told(given) is not None:
        return await forgotten(shelf, shelf.failures, given, "failed attempt")
    return await forgotten(shelf, shelf.cards, (await _find(shelf, given)).card.id, "fix card")


async def forgotten(shelf: TenantMemory, kept: ForgetsByName, name: str, kind: str) -> ForgetReport:
    """Remove the text from files, then the stored entry: after an interruption, the entry can be forgotten again."""
    known = await kept.told(name)
    dropped = _drop_blobs(shelf.blobs, known) if known else 0
    files = list(_files_with(shelf.settings.home, known.texts)) if known else []
    by_hand = [file for file in files if file.is_relative_to(shelf.settings.home / BY_HAND)]
    for item in by_hand:
        item.unlink(missing_ok=True)
    gone = await kept.forget(name)
    if gone is None:
        raise ConfigError(f"{name} no longer exists")
    dropped += _drop_blobs(shelf.blobs, gone)
    return ForgetReport(kind, name, dropped, len(by_hand), tuple(file for file in files if file not in by_hand))


async def memory_stats(shelf: TenantMemory, lessons: Iterable[Lesson] = ()) -> MemoryStats:
    held = await shelf.cards.holdings()
    often = sorted(held.recalls.items(), key=lambda recall: (-len(recall[1]), recall[0]))[:OFTEN]
    return MemoryStats(
        lessons=dict(sorted(Counter(lesson.status.value for lesson in lessons).items())),
        cards=sum(held.states.values()),
        states=held.states,
        repos=held.repos,
        failures=held.failures,
        recalled=len(held.recalls),
        recalling_runs=len(frozenset[str]().union(*held.recalls.values())),
        often=tuple(CardRecalls(card=card, runs=len(known)) for card, known in often),
    )


async def ask_graph(shelf: TenantMemory, asked: Questions) -> GraphAnswers:
    edges, repo, limit = shelf.edges, asked.repo, asked.limit
    fixes = await edges.fixes_of(asked.signature, repo=repo, limit=limit) if asked.signature else None
    return GraphAnswers(
        files=tuple(await edges.files_in_failures(repo=repo, limit=limit)) if asked.files else None,
        fixes=None if fixes is None else tuple(fixes),
        types=tuple(await edges.bug_types(repo=repo, limit=limit)) if asked.types else None,
    )


async def whole_graph(shelf: TenantMemory, *, repo: str | None = None) -> Graph:
    """Load the graph of all runs of the tenant, or of those of one repo."""
    return graph_of(shelf.settings.tenant, await shelf.edges.edges(repo=repo))


async def mirror_graph(shelf: TenantMemory, url: str, database: str, environ: Mapping[str, str]) -> MirrorCounts:
    """Update the copy of the tenant's graph in a graph database. Raises `ConfigError` without the extra `neo4j`."""
    return mirror_to(await whole_graph(shelf), url, database, environ)


async def _find(shelf: TenantMemory, given: str) -> KeptCard:
    found = await shelf.cards.beginning(given, 2) if given else []
    if len(found) > 1 and found[0] != given:
        raise ConfigError(f"several fix cards begin with {given}", remedy="type more of the ID")
    kept = await shelf.cards.card(found[0]) if found else None
    if kept is None:
        raise ConfigError(f"no fix card {given}", remedy="list them: redstart memory list")
    return kept


def _view(kept: KeptCard) -> CardView:
    return CardView(id=kept.card.id, state=kept.state, repo=kept.repo, created=kept.created, card=kept.card)


def _drop_blobs(blobs: SweptBlobs, found: ForgottenTexts) -> int:
    """Remove the blobs, and the blobs that they name, that contain the forgotten text. Return their number."""
    traces = TextTraces(found.texts)
    held: list[str] = []
    for name in sorted(closed(found.blobs, blobs)):
        with suppress(BlobMissing):
            if traces.are_in(blobs.get(name)):
                held.append(name)
    blobs.drop(held, math.inf)
    if kept := {item.name for item in blobs.kept()}.intersection(held):
        raise StoreError(
            f"blob {min(kept)} quotes the text to forget and cannot be removed",
            remedy="check its owner and permissions, then run the command again",
        )
    return len(held)


def _files_with(home: Path, texts: Iterable[str]) -> Iterator[Path]:
    """Yield the files of `home` outside of the store that contain these texts."""
    traces = TextTraces(texts)
    parts = [item for item in home.iterdir() if not item.name.startswith(_STORE)] if home.is_dir() else []
    for path in (file for part in parts for file in ([part] if part.is_file() else sorted(part.rglob("*")))):
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and traces.are_in(path.read_bytes()):
                yield path
