"""A task: code with something to mend, what is known of the true fix, and the tests that only grading sees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from pydantic import Field, ValidationError

from redstart.core.errors import ConfigError
from redstart.core.noun import FrozenValue
from redstart.toolkit.languages.registry import language_of_file

SLUG = 60
"""Characters of a task's name as a folder."""


class TaskLanguage(StrEnum):
    python = "python"
    javascript = "javascript"

    @classmethod
    def of(cls, paths: Iterable[str]) -> TaskLanguage:
        """That of these source files; Python's where none of them tells."""
        names = {found.name.lower() for path in paths if (found := language_of_file(path))}
        return next((item for item in reversed(cls) if item in names), cls.python)


class TaskChange(FrozenValue):
    """What becomes of some files: whole texts by path (None takes a file away), then a unified diff on top."""

    files: dict[str, str | None] = {}
    diff: str = ""

    def __bool__(self) -> bool:
        return bool(self.files or self.diff)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that it touches, sorted."""
        return tuple(sorted({*self.files, *_paths_of(self.diff)}))


class Base(FrozenValue):
    """The code as it is given: a repo at a commit or as its folder lies there, or nothing, and a change on top."""

    repo: str = ""
    """A folder on this machine; empty where `change` holds every file."""
    commit: str = ""
    """Empty for the files as they lie in the folder, those that git ignores left out."""
    change: TaskChange = TaskChange()


class Task(FrozenValue):
    """One task of a set. It is data: nothing of it was run yet."""

    id: str
    language: TaskLanguage = TaskLanguage.python
    base: Base
    goal: str = ""
    """What is to be reached, in words; may be empty where red tests say it."""
    shows_red: bool = True
    """Whether the base holds red tests. Where it does not, the goal is all that is given."""
    red: tuple[str, ...] = ()
    """Ids of tests that are red on the base with the hidden tests, and green with the fix; empty where they are found
    by running."""
    hidden: TaskChange = TaskChange()
    """Tests that are in no workspace before grading."""
    fix: TaskChange = TaskChange()
    """The true fix; empty where it is not known, and then the task cannot be verified."""
    tags: tuple[str, ...] = ()
    licence: str = ""
    seconds: float = Field(default=0.0, ge=0)
    """That one run of its tests may take; 0 for what the settings say."""
    python: str = Field(default="", exclude_if=lambda value: not value)
    """The interpreter of the repo's own environment; empty for the one that is found."""

    @property
    def digest(self) -> str:
        """The same for the same task: what was verified of another one does not count for it."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def slug(self) -> str:
        """Its name as a folder: unlike any other task's."""
        plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in self.id)
        return f"{plain[:SLUG].strip('.-')}-{self.digest[:8]}"


def read_tasks(text: str, where: str) -> list[Task]:
    """The tasks of a text in JSON Lines. Raises `ConfigError`, naming the line, for one that is none."""
    tasks: list[Task] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            tasks.append(Task.model_validate_json(line))
        except ValidationError as error:
            why = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise ConfigError(f"{where}, line {number}, is no task: {why}") from error
    return tasks


def write_tasks(tasks: list[Task], file: Path) -> None:
    """One task a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{task.model_dump_json()}\n" for task in tasks), encoding="utf-8")


def _paths_of(diff: str) -> set[str]:
    """Both sides of each file's header; a hunk's own lines can look alike only where they begin with `-- ` or `++ `."""
    found: set[str] = set()
    for before, after in zip(diff.splitlines(), diff.splitlines()[1:], strict=False):
        if before.startswith("--- ") and after.startswith("+++ "):
            sides = (line[4:].split("\t")[0].strip() for line in (before, after))
            found |= {side[2:] if side[:2] in ("a/", "b/") else side for side in sides if side != "/dev/null"}
    return found
