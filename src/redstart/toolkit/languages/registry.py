"""The registry of languages. No other module refers to a language by its name.

Built-in languages come first. An installed package adds more through the entry point group `redstart.languages`:
each entry is a `Language` or a callable that returns one.
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
"""Scenarios and snapshots, from which tests read their expectations."""


@cache
def languages() -> tuple[Language, ...]:
    """Return all languages: built-in ones, installed ones, and those known only by their conventions."""
    own = (import_module(f"redstart.toolkit.languages.{name}").LANGUAGE for name in _OWN)
    installed = (_made(point.load()) for point in entry_points(group=GROUP))
    known = tuple(cast("Language", language) for language in (*own, *installed))
    taken = {language.name for language in known}
    return (*known, *(language for language in CONVENTIONS if language.name not in taken))


def language_of_file(path: str) -> Language | None:
    """Return the language of a file, by its name's suffix."""
    return next((language for language in languages() if language.suffixes and path.endswith(language.suffixes)), None)


def language_of_runner(name: str) -> Language | None:
    """Return the language whose tests this runner runs; None for an unknown runner."""
    return next((language for language in languages() if name in language.runners), None)


def abilities(ability: Callable[[Language], Ability | None]) -> list[Ability]:
    """Return this ability of every language that has it, in the order of the languages."""
    return [able for language in languages() if (able := ability(language)) is not None]


def ability_of(runner: str, ability: Callable[[Language], Ability | None]) -> Ability:
    """Return this ability of the runner's language. If that lacks it, or the runner is unknown, return Python's.

    Raises `LookupError` if no language has the ability.
    """
    language = language_of_runner(runner)
    own = ability(language) if language else None
    if own is not None:
        return own
    if not (others := abilities(ability)):
        raise LookupError("no language has this ability")
    return others[0]


def runner_names() -> tuple[str, ...]:
    """Return the names of all known runners."""
    return tuple(name for language in languages() for name in language.runners)


def is_code(path: str) -> bool:
    """Return whether a file of this name is source code in a known language."""
    return language_of_file(path) is not None


def reads_code(path: str) -> bool:
    """Return whether a file of this name contains code that Redstart can parse."""
    language = language_of_file(path)
    return language is not None and language.reads_code


def language_of_cases(path: str) -> Language | None:
    """Return the language of the tests in a file, be they code or examples in a text."""
    with_examples = (language for language in languages() if path.endswith(language.example_suffixes or "\0"))
    return language_of_file(path) or next(with_examples, None)


def language_of_test(path: str) -> Language | None:
    """Return the language of a test file, or of a source file that supports tests; None for any other file."""
    found = next((language for language in languages() if language.is_test_path(path)), None)
    if found or not in_test_directory(path):
        return found
    return language_of_file(path)


def is_test_path(path: str) -> bool:
    """Return whether a path belongs to the tests of the tree: as a test, as support code or as data that tests read."""
    return in_test_directory(path) or bool(_TEST_DATA.search(path)) or language_of_test(path) is not None


def is_test_support(path: str) -> bool:
    """Return whether a file of this name supports tests but contains none, such as a `conftest.py`."""
    name = path.rpartition("/")[2]
    return any(name in language.support_names for language in languages())


def module_suffixes() -> tuple[str, ...]:
    """Return the suffixes of files whose tests may be identified by a dotted module name."""
    return tuple(language.module_suffix for language in languages() if language.module_suffix)


def dotted_module(path: str) -> str:
    """Return the dotted module name of a file; empty if its language has none."""
    suffix = next((suffix for suffix in module_suffixes() if path.endswith(suffix)), "")
    return path.removesuffix(suffix).replace("/", ".") if suffix else ""


def in_test_directory(path: str) -> bool:
    return bool(_TEST_DIRECTORY.search(path))


def _made(found: object) -> object:
    return found if isinstance(found, Language) else cast("type[Language]", found)()
