"""Select the lessons that apply to a run, decide which of them it sees, and find duplicates."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from redstart.core.errors import ConfigError
from redstart.core.frozen import clip
from redstart.core.learning import Signature
from redstart.core.lesson import (
    LONGEST,
    PREFIX,
    Lesson,
    LessonCounts,
    LessonDraw,
    LessonDraws,
    LessonOffer,
    LessonPlacement,
    LessonScope,
    LessonStatus,
    Provenance,
    Situation,
)
from redstart.core.report import Case
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.base.code_files import Read

SHOW_NEW = 0.5
SHOW_ACTIVE = 0.9
MAX_LESSONS = 5
"""The maximum number of lessons that apply to one run."""
MAX_LESSON_CHARACTERS = 1800
"""The maximum number of characters of these lessons together."""
HALF_LIFE = 180 * 86400.0
"""The time in which an unconfirmed lesson loses half of its weight."""
OTHER_CODE = 0.25
"""The factor on a lesson's weight if every file that it came from has changed."""
STALE = 0.1
"""The weight below which a lesson is not shown."""
MIN_MATCH_SHARE = 0.5
"""The share of the words of `when` that must occur in the goal or the failure if the family differs."""
DUPLICATE_SHARE = 0.8
"""The share of common words from which two lessons count as one."""

_WORD = re.compile(r"[^\W_](?:[\w.-]*\w)?")
_STOP_WORDS_TEXT = """a an and are as at be because before by do for from has have if in into is it its of on or so that
the their then there these this to use was when where which while will with you your"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_NOT = re.compile(r"\b(?:not|never|no|without|avoid|cannot|instead|unless)\b|n['’]t\b", re.IGNORECASE)
_ORDER = (LessonScope.repo, LessonScope.tenant, LessonScope.everyone)


def extract_words(text: str) -> frozenset[str]:
    """List the words of a text without the common ones."""
    return frozenset(word.lower() for word in _WORD.findall(text)) - _STOP_WORDS


def in_scope(lesson: Lesson, situation: Situation) -> bool:
    """Whether a lesson may be shown in this situation. Another tenant's lesson must be approved for everyone."""
    if lesson.scope is LessonScope.everyone:
        return True
    same_tenant = lesson.tenant == situation.tenant
    return same_tenant and (lesson.scope is LessonScope.tenant or lesson.repo == situation.repo)


def fit(lesson: Lesson, situation: Situation) -> float:
    """Score how well a lesson fits, from 0 (not at all) to 1 (the same kind of bug)."""
    if lesson.family and lesson.family == situation.family:
        return 1.0
    topic_words = extract_words(lesson.when)
    share = len(topic_words & extract_words(situation.text)) / len(topic_words) if topic_words else 0.0
    return share if share >= MIN_MATCH_SHARE else 0.0


def compute_freshness(lesson: Lesson, now: float, changed: float = 0.0) -> float:
    """Compute the weight that age and code changes leave to a lesson, from 1 down to 0.

    `changed` is the share of its files that have changed since the lesson was taught.
    """
    last_confirmed = max(lesson.made_at, lesson.confirmed_at or 0.0)
    age = max(now - last_confirmed, 0.0)
    return math.pow(2, -age / HALF_LIFE) * math.pow(OTHER_CODE, min(max(changed, 0.0), 1.0))


def select_lessons(
    lessons: Iterable[Lesson],
    situation: Situation,
    now: float,
    changed: Mapping[str, float] | None = None,
    max_lessons: int = MAX_LESSONS,
    room: int = MAX_LESSON_CHARACTERS,
) -> list[Lesson]:
    """Select the lessons that apply, best first, within the maximum number and `room` characters.

    `now` is in seconds since the epoch. `changed` maps a lesson's ID to the share of its files that changed. The
    selection does not depend on any draw of this run, as the measurement requires.
    """
    ranked: list[tuple[float, Lesson]] = []
    for lesson in lessons:
        if (
            lesson.same_as
            or lesson.status not in (LessonStatus.new, LessonStatus.active)
            or not in_scope(lesson, situation)
        ):
            continue
        weight = compute_freshness(lesson, now, (changed or {}).get(lesson.id, 0.0))
        score = fit(lesson, situation) * weight * get_show_probability(lesson.status)
        if score > 0 and weight >= STALE:
            ranked.append((score, lesson))
    selected: list[Lesson] = []
    for _, lesson in sorted(ranked, key=lambda pair: (-pair[0], pair[1].id)):
        size = len(lesson.when) + len(lesson.advice)
        if len(selected) < max_lessons and size <= room:
            selected.append(lesson)
            room -= size
    return selected


def get_show_probability(status: LessonStatus) -> float:
    """Return the probability with which a lesson of this status is shown."""
    return {LessonStatus.new: SHOW_NEW, LessonStatus.active: SHOW_ACTIVE}.get(status, 0.0)


def draw_number(seed: str, lesson: str) -> float:
    """Draw this run's number for this lesson, from 0 up to but not including 1. It is the same on every call."""
    digest = hashlib.sha256(f"lesson\x1f{seed}\x1f{lesson}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def draw_lessons(lessons: Sequence[Lesson], seed: str, *, explore: bool = True) -> LessonDraws:
    """Draw for each lesson that applies. The draws of a run are independent, and the order does not matter.

    `seed` must be new for each run and must not depend on its content, or a repeated task would always get the same
    draws. Without `explore`, all lessons are shown, and the run says nothing about their effect
    (`LessonOutcome.counts`).
    """
    coins: list[LessonDraw] = []
    for lesson in lessons:
        chance = get_show_probability(lesson.status)
        chance = chance if explore or not chance else 1.0
        shown = draw_number(seed, lesson.id) < chance
        texts = {"when": lesson.when, "advice": lesson.advice, "taught_by": lesson.provenance.run} if shown else {}
        coins.append(LessonDraw(lesson=lesson.id, shown=shown, probability=chance, **texts))
    return LessonDraws(coins=tuple(coins))


# -- the same lesson twice ---------------------------------------------------------------------------------------------


def measure_similarity(lesson: Lesson, other: Lesson) -> float:
    """Measure the share of common words. 0 if one lesson negates the other or names another thing."""
    text, other_text = f"{lesson.when}\n{lesson.advice}", f"{other.when}\n{other.advice}"
    if len(_NOT.findall(text)) != len(_NOT.findall(other_text)):
        return 0.0
    lesson_words, other_words = extract_words(text), extract_words(other_text)
    if any(_is_name(word) for word in lesson_words ^ other_words):
        return 0.0
    return len(lesson_words & other_words) / len(lesson_words | other_words) if lesson_words or other_words else 1.0


def _is_name(word: str) -> bool:
    """Whether the word is a number or identifier. Lessons that differ in one are different lessons."""
    return any(character.isdigit() or character in "_." for character in word)


def find_duplicate(lesson: Lesson, lessons: Iterable[Lesson]) -> Lesson | None:
    """Find a lesson that says the same to the same people about the same kind of bug. None if there is none.

    Retired lessons count, so that a lesson that proved useless does not return in other words.
    """
    rivals = [
        (measure_similarity(lesson, other), other)
        for other in lessons
        if other.id != lesson.id and other.family == lesson.family and _reaches_audience(other, lesson)
    ]
    similar = [(share, other) for share, other in rivals if share >= DUPLICATE_SHARE]
    return max(similar, key=lambda pair: (pair[0], pair[1].id))[1] if similar else None


def _reaches_audience(other: Lesson, lesson: Lesson) -> bool:
    """Whether `other` reaches everyone who would see `lesson`."""
    if other.scope is LessonScope.everyone:
        return True
    return other.tenant == lesson.tenant and (other.scope is LessonScope.tenant or other.repo == lesson.repo)


def confirm_with_duplicate(lesson: Lesson, duplicate: Lesson) -> Lesson:
    """Confirm a lesson with its duplicate. Its text, status and counts stay, because the draws were for that text."""
    runs = (duplicate.provenance.run, *duplicate.sources)
    known_runs = {lesson.provenance.run, *lesson.sources}
    sources = (*lesson.sources, *(run for run in dict.fromkeys(runs) if run not in known_runs))
    confirmed_at = max(lesson.confirmed_at or 0.0, duplicate.made_at)
    return lesson.model_copy(update={"sources": sources, "confirmed_at": confirmed_at})


# -- approval by a person ----------------------------------------------------------------------------------------------


def create_approved_lesson(lesson: Lesson, approver: str, now: float, scope: LessonScope | None = None) -> Lesson:
    """Widen a lesson's scope, or release it from quarantine or retirement, on behalf of a named person.

    Its measurement starts again, because earlier results or those from elsewhere say little about its effect now.
    Raises `ConfigError` if no person is named or the scope would become narrower.
    """
    if not approver.strip():
        raise ConfigError("the approval names no person", remedy="name the person who approves the lesson")
    new_scope = scope or lesson.scope
    if _ORDER.index(new_scope) < _ORDER.index(lesson.scope):
        raise ConfigError(
            f"lesson {lesson.id} is already for {lesson.scope.value}", remedy="forget the lesson, or leave it as it is"
        )
    return lesson.model_copy(
        update={
            "scope": new_scope,
            "status": LessonStatus.new,
            "reason": f"approved by {approver.strip()}",
            "approved_by": approver.strip(),
            "confirmed_at": now,
            "measured_from": now,
            "counts": LessonCounts(),
        }
    )


CASES = 3
"""How many failing tests describe the situation of a run."""


async def draw_lessons_for_run(run: RunState, ports: Ports, failing: Sequence[Case]) -> LessonDraws | None:
    """Draw the lessons that apply to this run: each is shown or withheld. None if they were drawn before.

    A run draws once, before its first question, so that later prompts do not depend on its progress.
    """
    if run.taught is not None:
        return None
    reproduction = run.now.reproduce
    signature = reproduction.report.signature if reproduction else None
    texts = [run.spec.goal, *(f"{case.id}\n{case.message}" for case in failing[:CASES])]
    situation = Situation(
        tenant=run.spec.tenant,
        repo=run.spec.repo,
        family=signature.family if signature else "",
        text=clip("\n".join(filter(None, texts)), 4000),
    )
    offer = await ports.lessons.offer_lessons(situation)
    changed = measure_file_changes(offer, run.spec.repo, lambda path: ports.trees.read(run.workspace, path))
    selected = select_lessons(offer.lessons, situation, offer.now, changed)
    return draw_lessons(selected, run.run_id, explore=run.spec.explore)


def measure_file_changes(offer: LessonOffer, repo: str, read: Read) -> dict[str, float]:
    """Map each lesson's ID to the share of its files that have changed. Lessons of other repos are left out."""
    lessons = [lesson for lesson in offer.lessons if lesson.files and lesson.provenance.repo == repo]
    return {
        message.id: sum(compute_digest(read(path)) != recorded for path, recorded in message.files.items())
        / len(message.files)
        for message in lessons
    }


def compute_digest(text: bytes | None) -> str:
    return "" if text is None else hashlib.sha256(text).hexdigest()[:16]


async def propose_lesson(run: RunState, ports: Ports, signature: Signature, when: str, advice: str) -> LessonPlacement:
    """Propose the lesson of a verified run. A lesson that is too long is refused here: it could not be stored."""
    when, advice = " ".join(when.split()), " ".join(advice.split())
    if not when and not advice:
        return LessonPlacement()
    if len(when) + len(advice) > LONGEST:
        return LessonPlacement(refused=(f"it is longer than {LONGEST} characters",))
    model = run.now.patch.model if run.now.patch else ""
    spec, snapshot = run.spec, run.now.made
    provenance = Provenance(repo=spec.repo, commit=spec.base.tree, run=run.run_id, model=model, outcome="verified")
    files = run.now.patch.files if run.now.patch else ()
    lesson = Lesson(
        id=f"{PREFIX}{run.run_id}-{run.now.number}",
        when=when,
        advice=advice,
        family=signature.family,
        tenant=spec.tenant,
        repo=spec.repo,
        provenance=provenance,
        files={path: compute_digest(ports.trees.read(snapshot, path)) for path in files} if snapshot else {},
        made_at=0.0,
    )
    return await ports.lessons.place_lesson(lesson)
