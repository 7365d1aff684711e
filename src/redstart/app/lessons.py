"""Show lessons to people, and approve, forget and export them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from redstart.app.memory import VIEW_VERSION, ForgetReport, TenantMemory, forgotten, signed
from redstart.app.wire import advisor_of
from redstart.core.errors import ConfigError
from redstart.core.lesson import PREFIX, Lesson, LessonScope, LessonStatus
from redstart.core.noun import FrozenValue
from redstart.toolkit.learning.lessons import approved

POINTS = 100


class MeasuredEffect(FrozenValue):
    """The measured effect of a lesson: the solve rate with it minus the rate without it, in percentage points."""

    runs: int
    estimate: float
    low: float
    high: float
    """The 95 % interval is valid no matter how often it is looked at."""
    helps: float
    """The probability that it helps, given the other lessons of its family: an estimate, not a proof."""
    harms: float


class LessonView(FrozenValue):
    v: int = VIEW_VERSION
    lesson: Lesson


class LessonStory(LessonView):
    worth: MeasuredEffect


def is_lesson(given: str) -> bool:
    """Whether an ID, or the beginning of one, is the ID of a lesson."""
    return given.startswith(PREFIX)


async def list_lessons(opened: TenantMemory, *, repo: str | None = None) -> list[Lesson]:
    """List the lessons with their current status, newest first, including other tenants' lessons for everyone."""
    found = await advisor_of(opened.lessons, _now).judged()
    return [item for item in reversed(found) if repo is None or item.repo == repo]


async def show_lesson(opened: TenantMemory, given: str) -> LessonStory:
    """Return a lesson with its measured effect. Raises `ConfigError` if no lesson or several match the ID prefix."""
    lesson = await _find(opened, given)
    own, pooled = await advisor_of(opened.lessons, _now).measured(lesson)
    worth = MeasuredEffect(
        runs=own.uses,
        estimate=round(own.estimate * POINTS, 1),
        low=round(own.low * POINTS, 1),
        high=round(own.high * POINTS, 1),
        helps=round(pooled.helps, 3),
        harms=round(pooled.harms, 3),
    )
    return LessonStory(lesson=lesson, worth=worth)


async def approve_lesson(opened: TenantMemory, given: str, *, by: str, scope: LessonScope | None = None) -> Lesson:
    """Widen a lesson's scope, or release it from quarantine or retirement, in a person's name. Its measurement starts
    again. Raises `ConfigError` as `show_lesson` does, for a narrower scope, and for a lesson of another tenant."""
    lesson = approved(await _find(opened, given), signed(by), _now(), scope)
    if not await opened.lessons.put(lesson):
        raise ConfigError(f"{lesson.id} belongs to another tenant", remedy="only that tenant can approve it")
    return lesson


async def forget_lesson(opened: TenantMemory, given: str) -> ForgetReport:
    """Remove a lesson and its duplicates, and erase its text from all stored data."""
    return await forgotten(opened, opened.lessons, (await _find(opened, given)).id, "lesson")


def skill_of(lessons: Sequence[Lesson], name: str) -> str:
    """Render the lessons that help as a `SKILL.md`, which other agents also read. Raises `ConfigError` if none do."""
    active = [lesson for lesson in lessons if lesson.status is LessonStatus.active]
    if not active:
        raise ConfigError("no lesson is measured to help yet", remedy="see how far each one is: redstart memory list")
    head = ["---", f"name: {name}", f"description: Lessons for work on {name}, each measured to help.", "---", ""]
    told = [
        line
        for item in active
        for line in (
            f"## When {item.when}",
            "",
            item.advice,
            "",
            f"({item.reason}; from run {item.provenance.run})",
            "",
        )
    ]
    return "\n".join([*head, f"# What helped in {name}", "", *told]).rstrip() + "\n"


def write_skill(lessons: Sequence[Lesson], folder: Path) -> Path:
    """Write `SKILL.md` into the folder, which is created and names the skill, and return its path.

    Raises `ConfigError` if no lesson helps or the file cannot be written.
    """
    file = folder / "SKILL.md"
    text = skill_of(lessons, folder.resolve().name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", remedy="name another folder") from error
    return file


async def _find(opened: TenantMemory, given: str) -> Lesson:
    found = [lesson for lesson in await list_lessons(opened) if lesson.id.startswith(given)]
    exact = [item for item in found if item.id == given]
    if not found:
        raise ConfigError(f"no lesson {given}", remedy="list them: redstart memory list")
    if len(found) > 1 and not exact:
        raise ConfigError(f"several lessons begin with {given}", remedy="type more of the ID")
    return (exact or found)[0]


def _now() -> float:
    return datetime.now(UTC).timestamp()
