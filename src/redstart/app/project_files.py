"""Make the files of a new project without its program: its name, and how to install, start and test it."""

from __future__ import annotations

import re

from redstart.core.errors import ConfigError
from redstart.toolkit.languages.new_program import NewPrograms, NewProject
from redstart.toolkit.languages.registry import list_languages

LONGEST_NAME = 40
"""The maximum length of a directory name that is made from a goal."""
_NO_NAME = frozenset({"a", "an", "the", "please", "create", "make", "write", "build", "implement", "develop"})
"""Words at the beginning of a goal that do not belong in a name."""
_NO_END = frozenset({"a", "an", "the", "and", "or", "that", "which", "to", "of", "in", "into", "for", "from", "with"})
"""Words that a name does not end with."""


def make_package_name(folder: str) -> str:
    """Make an importable name from the name of a folder."""
    name = re.sub(r"\W+", "_", folder.lower()).strip("_")
    return name if name.isidentifier() else f"p_{name}"


def make_folder_name(goal: str) -> str:
    """Make a directory name from the first words of a goal: `word-counter` for `Write a word counter`."""
    words = re.findall(r"[a-z0-9]+", goal.casefold())
    while len(words) > 1 and words[0] in _NO_NAME:
        del words[0]
    while len("-".join(words)) > LONGEST_NAME and len(words) > 1:
        words.pop()
    while len(words) > 1 and words[-1] in _NO_END:
        words.pop()
    return "-".join(words)[:LONGEST_NAME] or "new-program"


def create_skeleton(package: str, goal: str) -> dict[str, bytes | None]:
    """Make the files of a project from its name and goal alone."""
    return build_project_files(NewProject(package, goal))


def build_project_files(project: NewProject) -> dict[str, bytes | None]:
    """Make the files of a project by path. The same project always gets the same files."""
    project_files = find_new_programs(project.language).build_files(project)
    sections = (
        _format_code_section("Install", project_files.install),
        _format_code_section("Use", project_files.use),
        _format_code_section("Test", project_files.test),
    )
    return {
        project_files.manifest: project_files.description.encode(),
        "README.md": ("\n\n".join((f"# {project.package}", project.goal.strip(), *sections)) + "\n").encode(),
        ".gitignore": "".join(f"{item}\n" for item in project_files.ignored).encode(),
    }


def find_new_programs(language: str) -> NewPrograms:
    """Find how to start a program in this language. Raises `ConfigError` if the language does not support it."""
    programs_by_language = {item.key: item.new_programs for item in list_languages() if item.key}
    programs = programs_by_language.get(language)
    if programs is None:
        supported = ", ".join(key for key, programs in programs_by_language.items() if programs)
        raise ConfigError(f"no program can be created in {language}", remedy=f"choose one of: {supported}")
    return programs


def _format_code_section(title: str, text: str) -> str:
    return f"## {title}\n\n```\n{text}\n```"
