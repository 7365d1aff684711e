"""Show lessons to people, and approve, forget and export them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from redstart.app.memory import VIEW_VERSION, ForgetReport, TenantMemory, forget_entry, normalize_approver
from redstart.app.wire import create_lesson_selector
from redstart.core.errors import ConfigError
from redstart.core.frozen import FrozenValue
from redstart.core.lesson import PREFIX, Lesson, LessonScope, LessonStatus
from redstart.toolkit.learning.lessons import create_approved_lesson

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


def is_lesson(prefix: str) -> bool:
    """Whether an ID, or the beginning of one, is the ID of a lesson."""
    return prefix.startswith(PREFIX)


async def list_lessons(memory: TenantMemory, *, repo: str | None = None) -> list[Lesson]:
    """List the lessons with their current status, newest first, including other tenants' lessons for everyone."""
    lessons = await create_lesson_selector(memory.lessons, _get_timestamp).evaluate_lessons()
    return [item for item in reversed(lessons) if repo is None or item.repo == repo]


async def show_lesson(memory: TenantMemory, prefix: str) -> LessonStory:
    """Return a lesson with its measured effect. Raises `ConfigError` if no lesson or several match the ID prefix."""
    lesson = await _find(memory, prefix)
    effect, pooled = await create_lesson_selector(memory.lessons, _get_timestamp).measure_lesson(lesson)
    measured_effect = MeasuredEffect(
        runs=effect.uses,
        estimate=round(effect.estimate * POINTS, 1),
        low=round(effect.low * POINTS, 1),
        high=round(effect.high * POINTS, 1),
        helps=round(pooled.helps, 3),
        harms=round(pooled.harms, 3),
    )
    return LessonStory(lesson=lesson, worth=measured_effect)


async def approve_lesson(
    memory: TenantMemory, prefix: str, *, approver: str, scope: LessonScope | None = None
) -> Lesson:
    """Widen a lesson's scope, or release it from quarantine or retirement, in a person's name. Its measurement starts
    again. Raises `ConfigError` as `show_lesson` does, for a narrower scope, and for a lesson of another tenant."""
    lesson = create_approved_lesson(await _find(memory, prefix), normalize_approver(approver), _get_timestamp(), scope)
    if not await memory.lessons.put(lesson):
        raise ConfigError(f"{lesson.id} belongs to another tenant", remedy="only that tenant can approve it")
    return lesson


async def forget_lesson(memory: TenantMemory, prefix: str) -> ForgetReport:
    """Remove a lesson and its duplicates, and erase its text from all stored data."""
    return await forget_entry(memory, memory.lessons, (await _find(memory, prefix)).id, "lesson")


def render_skill(lessons: Sequence[Lesson], name: str) -> str:
    """Render the lessons that help as a `SKILL.md`, which other agents also read. Raises `ConfigError` if none do."""
    active_lessons = [lesson for lesson in lessons if lesson.status is LessonStatus.active]
    if not active_lessons:
        raise ConfigError("no lesson is measured to help yet", remedy="see how far each one is: redstart memory list")
    head = ["---", f"name: {name}", f"description: Lessons for work on {name}, each measured to help.", "---", ""]
    lines = [
        line
        for item in active_lessons
        for line in (
            f"## When {item.when}",
            "",
            item.advice,
            "",
            f"({item.reason}; from run {item.provenance.run})",
            "",
        )
    ]
    return "\n".join([*head, f"# What helped in {name}", "", *lines]).rstrip() + "\n"


def write_skill(lessons: Sequence[Lesson], folder: Path) -> Path:
    """Write `SKILL.md` into the folder, which is created and names the skill, and return its path.

    Raises `ConfigError` if no lesson helps or the file cannot be written.
    """
    file = folder / "SKILL.md"
    text = render_skill(lessons, folder.resolve().name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", remedy="choose another directory") from error
    return file


async def _find(memory: TenantMemory, prefix: str) -> Lesson:
    matches = [lesson for lesson in await list_lessons(memory) if lesson.id.startswith(prefix)]
    exact = [item for item in matches if item.id == prefix]
    if not matches:
        raise ConfigError(f"there is no lesson '{prefix}'", remedy="list them: redstart memory list")
    if len(matches) > 1 and not exact:
        raise ConfigError(f"the IDs of several lessons begin with '{prefix}'", remedy="type more of the ID")
    return (exact or matches)[0]


def _get_timestamp() -> float:
    return datetime.now(UTC).timestamp()
