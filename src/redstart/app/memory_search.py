"""Search memory for a pasted error: fixes, failed attempts and lessons. No model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from operator import mul
from pathlib import Path

from redstart.app.lessons import list_lessons
from redstart.app.memory import VIEW_VERSION, TenantMemory
from redstart.core.errors import ConfigError
from redstart.core.learning import CardState, FailureRecord, FixCard, Signature, likeness
from redstart.core.lesson import Lesson, LessonStatus
from redstart.core.noun import FrozenValue
from redstart.core.report import Case, Outcome
from redstart.ports.memory.hashing import HashingEmbedder, embedded
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.signature import sign

LONGEST = 200_000
"""The maximum length of a text to search for, in characters."""
LOOKED_THROUGH = 2_000
"""The number of newest cards, and of newest failed attempts, to compare."""
MOST_WORDS_ALIKE = 0.6
"""The minimum share of the text's words that a card or an attempt must contain to count as similar."""
_SUMMARY = re.compile(r"^(?:FAILED|ERROR) (?P<id>\S+?::\S+)(?: - (?P<message>.+))?$", re.MULTILINE)
_RAISED = re.compile(
    r"^(?:E\s+)?(?P<line>(?:[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt)\b.*|assert .+))$"
)
_WORD = re.compile(r"[^\W_]{3,}")

SAME, KIND, ALIKE = "the same failure", "the same kind of failure", "similar words"


class FixMatch(FrozenValue):
    match: str
    created: datetime
    repo: str
    card: FixCard


class FailureMatch(FrozenValue):
    match: str
    created: datetime
    repo: str
    failure: FailureRecord


class LessonMatch(FrozenValue):
    match: str
    lesson: Lesson


class MemoryAnswer(FrozenValue):
    """The matches for a text, the best of each kind first."""

    v: int = VIEW_VERSION
    error: str
    """The line of the text that contains the error."""
    fixes: tuple[FixMatch, ...] = ()
    failures: tuple[FailureMatch, ...] = ()
    lessons: tuple[LessonMatch, ...] = ()


async def search_memory(
    shelf: TenantMemory, text: str, *, root: Path, repo: str | None = None, limit: int = 5
) -> MemoryAnswer:
    """Search by the failure in the text, then by its words. Paths in the text may be relative to `root`.

    Raises `ConfigError` if the text is empty.
    """
    if not text.strip():
        raise ConfigError("there is no text to search for", remedy="redstart memory search \"KeyError: 'price'\"")
    case = read_error(text[:LONGEST])
    signature = sign(case, is_source=lambda path: not is_test_path(path), roots=(str(root),))
    wanted = _Wanted(signature, case)
    return MemoryAnswer(
        error=case.message,
        fixes=tuple(await _fixes(shelf, wanted, repo))[:limit],
        failures=tuple(await _failures(shelf, wanted, repo))[:limit],
        lessons=tuple(await _lessons(shelf, wanted, repo))[:limit],
    )


def read_error(text: str) -> Case:
    """Read the failure from a pasted traceback, test output or line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    summary = _SUMMARY.search(text)
    raised = [found["line"] for line in lines if (found := _RAISED.match(line))]
    said = summary["message"] if summary and summary["message"] else ""
    message = raised[-1] if raised else said or lines[-1]
    return Case(id=summary["id"] if summary else "", outcome=Outcome.failed, message=message, detail=text)


class _Wanted:
    """The search query in the forms in which it is compared."""

    def __init__(self, signature: Signature, case: Case) -> None:
        self.signature = signature
        self._place = embedded(likeness(signature, case.id))
        self._words = set(_words(case.message))

    def match(self, key: str, family: str, *texts: str) -> tuple[float, str] | None:
        """Return the score and the reason of a match; None if it does not match."""
        if key and key == self.signature.key:
            return 3.0, SAME
        if family and family == self.signature.family:
            return 2.0, KIND
        near = max((sum(map(mul, self._place, embedded(text))) for text in texts if text), default=0.0)
        held = self._words & set(_words("\n".join(texts)))
        share = len(held) / len(self._words) if self._words else 0.0
        fits = near >= HashingEmbedder.near or share >= MOST_WORDS_ALIKE
        return (max(near, share), ALIKE) if fits else None


def _words(text: str) -> Iterable[str]:
    return (word.lower() for word in _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)))


async def _fixes(shelf: TenantMemory, wanted: _Wanted, repo: str | None) -> list[FixMatch]:
    found: list[tuple[float, FixMatch]] = []
    for kept in await shelf.cards.cards(repo=repo, limit=LOOKED_THROUGH):
        card = kept.card
        texts = (card.likeness, f"{card.summary}\n{card.fix}")
        fits = wanted.match(card.error_signature, card.family, *texts) if kept.state is CardState.shown else None
        if fits:
            found.append((fits[0], FixMatch(match=fits[1], created=kept.created, repo=kept.repo, card=card)))
    return [match for _, match in sorted(found, key=lambda item: item[0], reverse=True)]


async def _failures(shelf: TenantMemory, wanted: _Wanted, repo: str | None) -> list[FailureMatch]:
    found: list[tuple[float, FailureMatch]] = []
    for kept in await shelf.failures.newest(LOOKED_THROUGH):
        record = kept.record
        if repo is not None and kept.repo != repo:
            continue
        texts = (record.likeness, record.what_failed, record.tried)
        if fits := wanted.match(record.error_signature, record.family, *texts):
            found.append((fits[0], FailureMatch(match=fits[1], created=kept.created, repo=kept.repo, failure=record)))
    return [match for _, match in sorted(found, key=lambda item: item[0], reverse=True)]


async def _lessons(shelf: TenantMemory, wanted: _Wanted, repo: str | None) -> list[LessonMatch]:
    found: list[tuple[float, LessonMatch]] = []
    for lesson in await list_lessons(shelf, repo=repo):
        if lesson.status in (LessonStatus.new, LessonStatus.active) and (
            fits := wanted.match("", lesson.family, lesson.when, lesson.advice)
        ):
            found.append((fits[0], LessonMatch(match=fits[1], lesson=lesson)))
    return [match for _, match in sorted(found, key=lambda item: item[0], reverse=True)]
