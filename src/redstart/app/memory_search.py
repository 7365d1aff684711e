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
from redstart.core.frozen import FrozenValue
from redstart.core.learning import CardState, FailureRecord, FixCard, Signature, build_similarity_text
from redstart.core.lesson import Lesson, LessonStatus
from redstart.core.report import Case, Outcome
from redstart.ports.memory.hashing import HashingEmbedder, embed_text
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.suites.reading.log import list_logged_failures

LONGEST = 200_000
"""The maximum length of a text to search for, in characters."""
LOOKED_THROUGH = 2_000
"""The number of newest cards, and of newest failed attempts, to compare."""
MIN_WORD_OVERLAP = 0.6
"""The minimum share of the text's words that a card or an attempt must contain to count as similar."""
_ERROR_LINE = re.compile(
    r"^(?:E\s+)?(?P<line>(?:[A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt)\b.*|assert .+))$"
)
_WORD = re.compile(r"[^\W_]{3,}")

SAME_FAILURE, KIND, ALIKE = "the same failure", "the same kind of failure", "similar words"


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
    memory: TenantMemory, text: str, *, root: Path, repo: str | None = None, limit: int = 5
) -> MemoryAnswer:
    """Search by the failure in the text, then by its words. Paths in the text may be relative to `root`.

    Raises `ConfigError` if the text is empty.
    """
    if not text.strip():
        raise ConfigError("there is no text to search for", remedy="redstart memory search \"KeyError: 'price'\"")
    case = read_error(text[:LONGEST])
    signature = sign(case, is_source=lambda path: not is_test_path(path), roots=(str(root),))
    query = _Wanted(signature, case)
    return MemoryAnswer(
        error=case.message,
        fixes=tuple(await _find_fixes(memory, query, repo))[:limit],
        failures=tuple(await _find_failures(memory, query, repo))[:limit],
        lessons=tuple(await _find_lessons(memory, query, repo))[:limit],
    )


def read_error(text: str) -> Case:
    """Read the failure from a pasted traceback, test output or line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    summary = next(iter(list_logged_failures(text)), None)
    error_lines = [match["line"] for line in lines if (match := _ERROR_LINE.match(line))]
    summary_message = summary.message if summary else ""
    message = error_lines[-1] if error_lines else summary_message or lines[-1]
    return Case(id=summary.id if summary else "", outcome=Outcome.failed, message=message, detail=text)


class _Wanted:
    """The search query in the forms in which it is compared."""

    def __init__(self, signature: Signature, case: Case) -> None:
        self.signature = signature
        self._place = embed_text(build_similarity_text(signature, case.id))
        self._message_words = set(_extract_words(case.message))

    def match(self, key: str, family: str, *texts: str) -> tuple[float, str] | None:
        """Return the score and the reason of a match; None if it does not match."""
        if key and key == self.signature.key:
            return 3.0, SAME_FAILURE
        if family and family == self.signature.family:
            return 2.0, KIND
        similarity = max((sum(map(mul, self._place, embed_text(text))) for text in texts if text), default=0.0)
        shared_words = self._message_words & set(_extract_words("\n".join(texts)))
        share = len(shared_words) / len(self._message_words) if self._message_words else 0.0
        is_match = similarity >= HashingEmbedder.near or share >= MIN_WORD_OVERLAP
        return (max(similarity, share), ALIKE) if is_match else None


def _extract_words(text: str) -> Iterable[str]:
    return (word.lower() for word in _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)))


async def _find_fixes(memory: TenantMemory, query: _Wanted, repo: str | None) -> list[FixMatch]:
    matches: list[tuple[float, FixMatch]] = []
    for stored_card in await memory.cards.list_cards(repo=repo, limit=LOOKED_THROUGH):
        card = stored_card.card
        texts = (card.likeness, f"{card.summary}\n{card.fix}")
        result = (
            query.match(card.error_signature, card.family, *texts) if stored_card.state is CardState.shown else None
        )
        if result:
            matches.append(
                (result[0], FixMatch(match=result[1], created=stored_card.created, repo=stored_card.repo, card=card))
            )
    return [match for _, match in sorted(matches, key=lambda item: item[0], reverse=True)]


async def _find_failures(memory: TenantMemory, query: _Wanted, repo: str | None) -> list[FailureMatch]:
    matches: list[tuple[float, FailureMatch]] = []
    for stored_failure in await memory.failures.list_newest(LOOKED_THROUGH):
        record = stored_failure.record
        if repo is not None and stored_failure.repo != repo:
            continue
        texts = (record.likeness, record.what_failed, record.tried)
        if result := query.match(record.error_signature, record.family, *texts):
            matches.append(
                (
                    result[0],
                    FailureMatch(
                        match=result[1], created=stored_failure.created, repo=stored_failure.repo, failure=record
                    ),
                )
            )
    return [match for _, match in sorted(matches, key=lambda item: item[0], reverse=True)]


async def _find_lessons(memory: TenantMemory, query: _Wanted, repo: str | None) -> list[LessonMatch]:
    matches: list[tuple[float, LessonMatch]] = []
    for lesson in await list_lessons(memory, repo=repo):
        if lesson.status in (LessonStatus.new, LessonStatus.active) and (
            result := query.match("", lesson.family, lesson.when, lesson.advice)
        ):
            matches.append((result[0], LessonMatch(match=result[1], lesson=lesson)))
    return [match for _, match in sorted(matches, key=lambda item: item[0], reverse=True)]
