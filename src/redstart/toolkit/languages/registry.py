"""Which languages there are. Nothing else asks for one by its name.

Redstart's own languages come first; a package that is installed beside it adds more through the entry point group
`redstart.languages`, each a `Language` or something that returns one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TypeVar, cast

from redstart.toolkit.languages.conventions import CONVENTIONS
from redstart.toolkit.languages.protocol import Language

Ability = TypeVar("Ability")

GROUP = "redstart.languages"
_OWN = ("python", "node")
_TEST_DIRECTORY = re.compile(r"(?:^|/)(?:tests?|testing_data|__snapshots__)/", re.IGNORECASE)
_TEST_DATA = re.compile(r"\.(?:feature|robot|ambr|snap)(?:/|$)", re.IGNORECASE)
"""Scenarios and snapshots: what tests read their expectations from."""


@cache
def languages() -> tuple[Language, ...]:
    """All of them: those with a package of ours, those that are installed, and those known by their conventions."""
    own = (import_module(f"redstart.toolkit.languages.{name}").LANGUAGE for name in _OWN)
    installed = (_made(point.load()) for point in entry_points(group=GROUP))
    known = tuple(cast("Language", language) for language in (*own, *installed))
    taken = {language.name for language in known}
    return (*known, *(language for language in CONVENTIONS if language.name not in taken))


def language_of_file(path: str) -> Language | None:
    """The language that a file is written in, by the end of its name."""
    return next((language for language in languages() if language.suffixes and path.endswith(language.suffixes)), None)


def language_of_runner(name: str) -> Language | None:
    """The language whose tests this runner runs; None for one that nobody knows."""
    return next((language for language in languages() if name in language.runners), None)


def abilities(ability: Callable[[Language], Ability | None]) -> list[Ability]:
    """What the languages can do, of those that can, in their order."""
    return [able for language in languages() if (able := ability(language)) is not None]


def ability_of(runner: str, ability: Callable[[Language], Ability | None]) -> Ability:
    """What the language of this runner can do; where it cannot, or nobody knows the runner, what Python can.

    Raises `LookupError` for what no language can do.
    """
    language = language_of_runner(runner)
    own = ability(language) if language else None
    if own is not None:
        return own
    if not (others := abilities(ability)):
        raise LookupError("no language has this ability")
    return others[0]


def runner_names() -> tuple[str, ...]:
    """All the runners that are known."""
    return tuple(name for language in languages() for name in language.runners)


def is_code(path: str) -> bool:
    """Whether a file of this name is of a language that a program is written in."""
    return language_of_file(path) is not None


def reads_code(path: str) -> bool:
    """Whether a file of this name holds code that Redstart can read."""
    language = language_of_file(path)
    return language is not None and language.reads_code


def language_of_cases(path: str) -> Language | None:
    """The language of the tests that a file holds, as code or as the examples of a text."""
    with_examples = (language for language in languages() if path.endswith(language.example_suffixes or "\0"))
    return language_of_file(path) or next(with_examples, None)


def language_of_test(path: str) -> Language | None:
    """The language of a test file, or of a file of code that supports tests; None for any other file."""
    found = next((language for language in languages() if language.is_test_path(path)), None)
    if found or not in_test_directory(path):
        return found
    return language_of_file(path)


def is_test_path(path: str) -> bool:
    """Whether a path of the tree belongs to its tests: as a test, as their support or as data that they read."""
    return in_test_directory(path) or bool(_TEST_DATA.search(path)) or language_of_test(path) is not None


def is_test_support(path: str) -> bool:
    """Whether a file of this name belongs to the tests and holds none, such as a `conftest.py`."""
    name = path.rpartition("/")[2]
    return any(name in language.support_names for language in languages())


def module_suffixes() -> tuple[str, ...]:
    """What the names of files end with whose tests may be named by a dotted module."""
    return tuple(language.module_suffix for language in languages() if language.module_suffix)


def dotted_module(path: str) -> str:
    """The module that a file is, with dots; empty where its language has none."""
    suffix = next((suffix for suffix in module_suffixes() if path.endswith(suffix)), "")
    return path.removesuffix(suffix).replace("/", ".") if suffix else ""


def in_test_directory(path: str) -> bool:
    return bool(_TEST_DIRECTORY.search(path))


def _made(found: object) -> object:
    return found if isinstance(found, Language) else cast("type[Language]", found)()
