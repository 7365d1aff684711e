"""A task: code to fix, the true fix if known, and the tests that only grading sees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from pydantic import Field, ValidationError

from redstart.core.errors import ConfigError
from redstart.core.frozen import FrozenValue
from redstart.toolkit.languages.registry import find_file_language

SLUG = 60
"""Maximum number of characters of a task name in its directory name."""


class TaskLanguage(StrEnum):
    python = "python"
    javascript = "javascript"

    @classmethod
    def detect(cls, paths: Iterable[str]) -> TaskLanguage:
        """Return the language of these source files; Python if none of them shows it."""
        names = {language.name.lower() for path in paths if (language := find_file_language(path))}
        return next((item for item in reversed(cls) if item in names), cls.python)


class TaskChange(FrozenValue):
    """A change of files: whole texts by path (None deletes the file), then a unified diff on top."""

    files: dict[str, str | None] = {}
    diff: str = ""

    def __bool__(self) -> bool:
        return bool(self.files or self.diff)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that the change touches, sorted."""
        return tuple(sorted({*self.files, *_list_paths(self.diff)}))


class Base(FrozenValue):
    """The given code: a repo at a commit or as its directory is now, or nothing, and a change on top."""

    repo: str = ""
    """A directory on this machine; empty if `change` has every file."""
    commit: str = ""
    """Empty for the current files of the directory, without those that git ignores."""
    change: TaskChange = TaskChange()


class Task(FrozenValue):
    """One task of a set. It is data; creating it runs nothing."""

    id: str
    language: TaskLanguage = TaskLanguage.python
    base: Base
    goal: str = ""
    """The goal in plain English; may be empty if failing tests define it."""
    shows_red: bool = True
    """Whether the base has failing tests. If it does not, only the goal is given."""
    red: tuple[str, ...] = ()
    """IDs of tests that fail on the base with the hidden tests and pass with the fix; empty to find them by running the
    tests."""
    hidden: TaskChange = TaskChange()
    """Tests that no workspace contains before grading."""
    fix: TaskChange = TaskChange()
    """The true fix; empty if it is not known, and then the task cannot be checked."""
    tags: tuple[str, ...] = ()
    licence: str = ""
    seconds: float = Field(default=0.0, ge=0)
    """Seconds that one run of its tests may take; 0 for the limit in the settings."""
    python: str = Field(default="", exclude_if=lambda value: not value)
    """The interpreter of the repo's environment; empty to detect it."""

    @property
    def digest(self) -> str:
        """The same for the same task. A check counts only for the task with its digest."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def slug(self) -> str:
        """The unique name of its directory."""
        cleaned = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in self.id)
        return f"{cleaned[:SLUG].strip('.-')}-{self.digest[:8]}"


def read_tasks(text: str, source: str) -> list[Task]:
    """Read tasks from JSON Lines. Raises `ConfigError`, naming the line, for an invalid task."""
    tasks: list[Task] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            tasks.append(Task.model_validate_json(line))
        except ValidationError as error:
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise ConfigError(f"{source}, line {number}, is not a task: {reason}") from error
    return tasks


def write_tasks(tasks: list[Task], file: Path) -> None:
    """Write one task per line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{task.model_dump_json()}\n" for task in tasks), encoding="utf-8")


def _list_paths(diff: str) -> set[str]:
    """List both paths of each file header. Lines of a hunk look alike only if they begin with `-- ` or `++ `."""
    paths: set[str] = set()
    for before, after in zip(diff.splitlines(), diff.splitlines()[1:], strict=False):
        if before.startswith("--- ") and after.startswith("+++ "):
            names = (line[4:].split("\t")[0].strip() for line in (before, after))
            paths |= {name[2:] if name[:2] in ("a/", "b/") else name for name in names if name != "/dev/null"}
    return paths
