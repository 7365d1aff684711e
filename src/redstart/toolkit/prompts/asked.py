"""The question for a test of what is wrong with, or still missing in, a program that is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from redstart.core.chat import Message
from redstart.core.context import Context
from redstart.core.run import RunState
from redstart.ports.bundle import Note
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section


class Shown(NamedTuple):
    """What of the project its writer sees."""

    files: str
    """Its files and what they offer."""
    code: Context
    read: Callable[[str], bytes | None]
    example: tuple[str, str] | None
    """Path and text of a test that is there."""


def told_of(run: RunState) -> str:
    """What the test is about, in words."""
    plan = run.now.plan
    aims = (f"{one.title}\n{' '.join(one.criteria)}" for one in plan.subtasks) if plan else ()
    return "\n".join((run.spec.goal, *aims))


def about_test(run: RunState, goal: str, shown: Shown, answer: int, note: Note) -> tuple[Message, ...]:
    """The question about a goal in this section, with room for an answer of so many tokens."""
    spec = run.spec
    return fitted(
        note,
        "asked/reproduce",
        spec.asks.room(answer),
        goal=goal,
        hint=sections.hint(spec.hint),
        notes=sections.notes(shown.read),
        plan=sections.plan(run.now.plan),
        runner=section("The tests are run with", spec.suite.runner),
        files=section("Files", data("files", shown.files, 40_000)),
        code=sections.code(shown.code, shown.read),
        example=section("A test of this project", data(*shown.example)) if shown.example else "",
    )
