"""Offer lessons to a run, each with the status that its outcomes so far justify, and place proposed lessons.

A lesson is data in a prompt, and no rule here is the security boundary: policy is judged on the resulting tree, and
programs run in a sandbox. Lessons are refused here only because they would be useless to an honest run.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from redstart.core.lesson import (
    LONGEST,
    Lesson,
    LessonCounts,
    LessonOffer,
    LessonPlacement,
    LessonStatus,
    Provenance,
    Situation,
)
from redstart.core.safe_text import is_visible
from redstart.ports.memory.port import LessonStore, LessonUse
from redstart.toolkit.learning.lesson_effect import (
    LessonEffect,
    LessonEvidence,
    PooledEffect,
    decide_lesson_status,
    get_cost,
    pool_effect,
)
from redstart.toolkit.learning.lessons import confirm_with_duplicate, find_duplicate, select_lessons

_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://|\bhxxps?\b|\bwww\.|\bmailto:|\b\w[\w.+-]*@[\w-]+\.\w|\b(?:\d{1,3}\.){3}\d{1,3}\b"
    r"|\b[\w-]+\.(?:com|org|net|edu|gov)\b|\b[\w-]+\.(?:io|dev|ai|co|app|sh|xyz|ru|cn|de|uk|me|info|biz)/",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^\s*[$>%]\s+\w|&&|\|\s*(?:sh|bash|zsh|python\d?|tee|xargs|sudo)\b|\$\(|(?<![\w-])--[a-z][\w-]+"
    r"|\b(?:sudo|curl|wget|chmod|chown|scp|ssh)\s+\S"
    r"|\b(?:rm|mv|cp|kill|nc|eval|exec|source|export|tar|cat)\s+(?:-\w|[/~$\"'])"
    r"|\b(?:pip3?|npm|npx|yarn|pnpm|uv|poetry|pdm|apt|apt-get|brew|conda|cargo|gem)\s+"
    r"(?:install|add|i|run|exec|uninstall|remove|update|upgrade|sync)\b"
    r"|\bgit\s+(?:push|commit|reset|checkout|clean|config|rebase|apply|add|clone|fetch|pull|stash|rm|restore|merge)\b"
    r"|\b(?:docker|podman|kubectl)\s+(?:run|exec|pull|build|apply|cp)\b"
    r"|\b(?:python\d?(?:\.\d+)?|pytest|node|bash|sh|zsh|powershell|make|tox|nox|ruff)\s+"
    r"(?:-\w|[\w./-]+\.(?:py|sh|js|mjs|ts|ps1)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_UNLESS_FORBIDDEN = r"(?<!not )(?<!never )(?<!n't )(?<!n’t )\b"
"""What must not precede a verb: forbidding something is honest advice."""
_BETWEEN = r"(?:(?!\b(?:not|never|without|instead)\b)[^.\n]){0,40}?"
_POLICY = (
    re.compile(
        _UNLESS_FORBIDDEN + r"(?:ignor|disregard|forget|overrid|bypass|circumvent|disabl|deactivat|turn(?:ing)? off|"
        r"switch(?:ing)? off|skip|remov|delet|weaken|loosen|relax|suppress|work(?:ing)? around|get(?:ting)? around)"
        r"\w*\b"
        + _BETWEEN
        + r"\b(?:instructions?|rules?|polic(?:y|ies)|guards?|guardrails?|tests?|assertions?|asserts|sandbox|budgets?|"
        r"verification|reviews?|approvals?|hooks?|safety|security|permissions?|linters?|tripwires?|"
        r"(?:safety|security|policy|lint|ci|honesty) checks?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        _UNLESS_FORBIDDEN
        + r"(?:edit|chang|modif|rewrit|adjust|updat|regenerat)\w*\b"
        + _BETWEEN
        + r"\b(?:tests?|test files?|conftest\w*|assertions?|expected (?:values?|outputs?|results?)|snapshots?)\b",
        re.IGNORECASE,
    ),
    re.compile(
        _UNLESS_FORBIDDEN
        + r"(?:allow|grant|enabl|open|request|ask for)\w*\b"
        + _BETWEEN
        + r"\b(?:network|internet|root|sandbox|host access|write access|admin\w*)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:exfiltrat|upload|send|post|leak|print|reveal|output|cop(?:y|ies)|read|writ)\w*\b"
        + _BETWEEN
        + r"\b(?:secrets|credentials|passwords|api keys?|private keys?|environment variables|\.env\b)",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bsystem prompt\b|\byou are now\b|\byour (?:new )?(?:instructions?|role|task)s? (?:is|are)\b|\bjailbreak"
        r"|\bdeveloper mode\b|\b(?:previous|prior|above|earlier) (?:instructions?|messages?|rules?)\b|\bredstart\b"
        r"|\b(?:turn|switch)(?:ing)? (?:the )?(?:sandbox|checks?|tests?|guards?) off\b"
        r"|\balways (?:approve|accept|answer|say|report|claim)\b"
        r"|\b(?:mark|report|call) (?:it|this|the run) (?:as )?green\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bpytest\.(?:skip|mark)|\bx(?:fail|pass)\b|\bnoqa\b|\btype:\s*ignore\b|\bpragma\b", re.IGNORECASE),
    re.compile(r"\b(?:memory|sandbox|policy|verify|budget|models?|limits?)\.[a-z_]+\s*=", re.IGNORECASE),
)
_PLACES = re.compile(
    r"(?<![\w.)\]])(?:~/|/(?:etc|proc|sys|dev|home|root|usr|var|tmp|Users)\b)|(?<![\w.])\.\./"
    r"|(?<![\w/])\.(?:git(?:hub|ignore|attributes|modules|lab-ci)?|ssh|aws|env(?:rc)?|bashrc|profile|netrc|vscode)\b"
    r"|\b(?:conftest|sitecustomize|usercustomize)\b|\w\.pth\b"
    r"|\b(?:pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini|package\.json|agents\.md|claude\.md)\b",
    re.IGNORECASE,
)
"""Paths that no fix may touch or that lie outside the project."""
_MARKS = re.compile(
    r"```|</\s*data\b|<\|?/?\s*(?:system|assistant|user|tool|human|im_start|im_end|instructions?)\b|\[/?INST\]|«secret:"
    r"|^\s*(?:system|assistant|user|human)\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_ENCODED_TEXT = re.compile(r"[A-Za-z0-9+/=_-]{48,}")
"""A string longer than any word, which is not meant for readers."""
_BLANKS = re.compile(r"\s+")


def list_refusal_reasons(
    when: str, advice: str, provenance: Provenance, has_secret: Callable[[str], bool]
) -> tuple[str, ...]:
    """List the reasons why this may not become a lesson. Empty if it may.

    `has_secret` tells whether a text contains a secret.
    """
    original = f"{when}\n{advice}"
    text = unicodedata.normalize("NFKC", original)
    one_line = _BLANKS.sub(" ", text)
    checks = [
        (provenance.outcome != "verified", "it comes from a run that was not verified"),
        (not when.strip() or not advice.strip(), "it does not say when it applies, or what to do"),
        (len(when) + len(advice) > LONGEST, f"it is longer than {LONGEST} characters"),
        (_has_invisible_characters(original), "it has characters that cannot be seen"),
        (bool(_ADDRESS.search(text)), "it names an address"),
        (bool(_COMMAND.search(text) or _COMMAND.search(one_line)), "it holds a command"),
        (any(pattern.search(one_line) for pattern in _POLICY), "it would change what is allowed"),
        (bool(_PLACES.search(unicodedata.normalize("NFKC", advice))), "it refers to a place that no fix may touch"),
        (bool(_MARKS.search(text)), "it is written as if it were a part of the conversation"),
        (bool(_ENCODED_TEXT.search(text)), "it holds text that nobody can read"),
        (has_secret(original) or has_secret(text), "it holds a secret"),
    ]
    return tuple(reason for is_so, reason in checks if is_so)


def _has_invisible_characters(text: str) -> bool:
    return any(not is_visible(character) and character not in "\n\t" for character in text)


MAX_OFFERED_LESSONS = 20
"""How many lessons are offered for one situation: more than a run takes, since code changes may lower some."""
UNLIMITED_CHARACTERS = 100_000
"""A number of characters that means no limit. The run itself selects what fits."""

Uses = Mapping[str, Sequence[LessonUse]]


class LessonSelector:
    """Connects the lesson store with the runs. `now` returns seconds since the epoch."""

    def __init__(self, store: LessonStore, now: Callable[[], float], has_secret: Callable[[str], bool]) -> None:
        self._store, self._now, self._has_secret = store, now, has_secret

    async def offer_lessons(self, situation: Situation) -> LessonOffer:
        now = self._now()
        lessons = select_lessons(
            await self.evaluate_lessons(), situation, now, max_lessons=MAX_OFFERED_LESSONS, room=UNLIMITED_CHARACTERS
        )
        return LessonOffer(lessons=tuple(lessons), now=now)

    async def place_lesson(self, lesson: Lesson) -> LessonPlacement:
        reasons = list_refusal_reasons(lesson.when, lesson.advice, lesson.provenance, self._has_secret)
        if reasons:
            return LessonPlacement(refused=reasons)
        duplicate = find_duplicate(lesson, [item for item in await self._store.list_lessons() if not item.same_as])
        stored = lesson.model_copy(update={"made_at": self._now(), "same_as": duplicate.id if duplicate else ""})
        return LessonPlacement(lesson=stored)

    async def evaluate_lessons(self) -> list[Lesson]:
        """List all lessons, duplicates merged, with their counts and current status.

        A changed status is stored with its reason.
        """
        lessons = merge_duplicates(await self._store.list_lessons())
        uses = await self._store.list_uses([lesson.id for lesson in lessons])
        evidence_by_id = {lesson.id: collect_evidence(lesson, uses) for lesson in lessons}
        evaluated: list[Lesson] = []
        for lesson in lessons:
            updated = lesson.model_copy(update={"counts": count_outcomes(lesson, uses)})
            family = [
                evidence_by_id[item.id] for item in lessons if item.id != lesson.id and item.family == lesson.family
            ]
            decision = decide_lesson_status(
                lesson.status, evidence_by_id[lesson.id], cost=collect_evidence(lesson, uses, cost=True), family=family
            )
            if decision.status is not lesson.status:
                updated = await self._store_status(updated, decision.status, decision.reason)
            evaluated.append(updated)
        return evaluated

    async def _store_status(self, lesson: Lesson, status: LessonStatus, reason: str) -> Lesson:
        confirmation = {"confirmed_at": self._now()} if status is LessonStatus.active else {}
        changed = lesson.model_copy(update={"status": status, "reason": reason, **confirmation})
        # A run that is refused in the meantime puts its lessons into quarantine, and they stay there.
        await self._store.put(
            changed.model_copy(update={"counts": LessonCounts()}), unless_status=LessonStatus.quarantined
        )
        return changed

    async def measure_lesson(self, lesson: Lesson) -> tuple[LessonEffect, PooledEffect]:
        """Measure a lesson's effect by its own runs alone, and with the help of its family."""
        lessons = [item for item in merge_duplicates(await self._store.list_lessons()) if item.family == lesson.family]
        uses = await self._store.list_uses([item.id for item in lessons])
        evidence = collect_evidence(lesson, uses)
        return evidence.measure_effect(), pool_effect(
            evidence, [collect_evidence(item, uses) for item in lessons if item.id != lesson.id]
        )


def merge_duplicates(lessons: Iterable[Lesson]) -> list[Lesson]:
    """Merge duplicates: each lesson occurs once, with the runs that taught it again, if those were verified."""
    by_id: dict[str, Lesson] = {}
    for lesson in lessons:
        if not lesson.same_as:
            by_id[lesson.id] = lesson
        elif lesson.same_as in by_id and lesson.status is not LessonStatus.quarantined:
            by_id[lesson.same_as] = confirm_with_duplicate(by_id[lesson.same_as], lesson)
    return list(by_id.values())


def _list_counted_uses(lesson: Lesson, uses: Uses) -> list[LessonUse]:
    start = lesson.measured_from or 0.0
    return [item for item in uses.get(lesson.id, ()) if item.ended_at >= start]


def count_outcomes(lesson: Lesson, uses: Uses) -> LessonCounts:
    counts = LessonCounts()
    for item in _list_counted_uses(lesson, uses):
        counts = counts.add(item.use)
    return counts


def collect_evidence(lesson: Lesson, uses: Uses, *, cost: bool = False) -> LessonEvidence:
    return LessonEvidence([item.use for item in _list_counted_uses(lesson, uses)], outcome=get_cost if cost else None)
