"""Make the files of a new project without its program: its name, and how to install, start and test it."""

from __future__ import annotations

import re

from redstart.core.errors import ConfigError
from redstart.toolkit.languages.new_program import NewPrograms, NewProject
from redstart.toolkit.languages.registry import languages

LONGEST_NAME = 40
"""The maximum length of a directory name that is made from a goal."""
_NO_NAME = frozenset({"a", "an", "the", "please", "create", "make", "write", "build", "implement", "develop"})
"""Words at the beginning of a goal that do not belong in a name."""
_NO_END = frozenset({"a", "an", "the", "and", "or", "that", "which", "to", "of", "in", "into", "for", "from", "with"})
"""Words that a name does not end with."""


def package_name(folder: str) -> str:
    """Make an importable name from the name of a folder."""
    name = re.sub(r"\W+", "_", folder.lower()).strip("_")
    return name if name.isidentifier() else f"p_{name}"


def folder_name(goal: str) -> str:
    """Make a directory name from the first words of a goal: `word-counter` for `Write a word counter`."""
    words = re.findall(r"[a-z0-9]+", goal.casefold())
    while len(words) > 1 and words[0] in _NO_NAME:
        del words[0]
    while len("-".join(words)) > LONGEST_NAME and len(words) > 1:
        words.pop()
    while len(words) > 1 and words[-1] in _NO_END:
        words.pop()
    return "-".join(words)[:LONGEST_NAME] or "new-program"


def skeleton(package: str, goal: str) -> dict[str, bytes | None]:
    """Make the files of a project from its name and goal alone."""
    return files_of(NewProject(package, goal))


def files_of(project: NewProject) -> dict[str, bytes | None]:
    """Make the files of a project by path. The same project always gets the same files."""
    given = new_programs(project.language).files(project)
    ways = (_code("Install", given.install), _code("Use", given.use), _code("Test", given.test))
    return {
        given.manifest: given.description.encode(),
        "README.md": ("\n\n".join((f"# {project.package}", project.goal.strip(), *ways)) + "\n").encode(),
        ".gitignore": "".join(f"{item}\n" for item in given.ignored).encode(),
    }


def new_programs(language: str) -> NewPrograms:
    """Find how to start a program in this language. Raises `ConfigError` if the language does not support it."""
    able = {item.key: item.new_programs for item in languages() if item.key}
    programs = able.get(language)
    if programs is None:
        known = ", ".join(key for key, programs in able.items() if programs)
        raise ConfigError(f"no program can be created in {language}", remedy=f"choose one of: {known}")
    return programs


def _code(title: str, text: str) -> str:
    return f"## {title}\n\n```\n{text}\n```"
