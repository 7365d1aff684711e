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
_BUILT_IN_LANGUAGES = ("python", "node")
_TEST_DIRECTORY = re.compile(r"(?:^|/)(?:tests?|testing_data|__snapshots__)/", re.IGNORECASE)
_TEST_DATA = re.compile(r"\.(?:feature|robot|ambr|snap)(?:/|$)", re.IGNORECASE)
"""Scenarios and snapshots, from which tests read their expectations."""


@cache
def list_languages() -> tuple[Language, ...]:
    """Return all languages: built-in ones, installed ones, and those known only by their conventions."""
    built_in = (import_module(f"redstart.toolkit.languages.{name}").LANGUAGE for name in _BUILT_IN_LANGUAGES)
    installed = (_create_language(point.load()) for point in entry_points(group=GROUP))
    loaded = tuple(cast("Language", language) for language in (*built_in, *installed))
    names = {language.name for language in loaded}
    return (*loaded, *(language for language in CONVENTIONS if language.name not in names))


def find_file_language(path: str) -> Language | None:
    """Return the language of a file, by its name's suffix."""
    return next(
        (language for language in list_languages() if language.suffixes and path.endswith(language.suffixes)), None
    )


def find_runner_language(name: str) -> Language | None:
    """Return the language whose tests this runner runs; None for an unknown runner."""
    return next((language for language in list_languages() if name in language.runners), None)


def list_abilities(ability: Callable[[Language], Ability | None]) -> list[Ability]:
    """Return this ability of every language that has it, in the order of the languages."""
    return [value for language in list_languages() if (value := ability(language)) is not None]


def get_runner_ability(runner: str, ability: Callable[[Language], Ability | None]) -> Ability:
    """Return this ability of the runner's language. If that lacks it, or the runner is unknown, return Python's.

    Raises `LookupError` if no language has the ability.
    """
    language = find_runner_language(runner)
    own_ability = ability(language) if language else None
    if own_ability is not None:
        return own_ability
    if not (fallbacks := list_abilities(ability)):
        raise LookupError("no language has this ability")
    return fallbacks[0]


def list_runner_names() -> tuple[str, ...]:
    """Return the names of all known runners."""
    return tuple(name for language in list_languages() for name in language.runners)


def is_code(path: str) -> bool:
    """Return whether a file of this name is source code in a known language."""
    return find_file_language(path) is not None


def is_parsable_code(path: str) -> bool:
    """Return whether a file of this name contains code that Redstart can parse."""
    language = find_file_language(path)
    return language is not None and language.reads_code


def find_case_language(path: str) -> Language | None:
    """Return the language of the tests in a file, be they code or examples in a text."""
    with_examples = (language for language in list_languages() if path.endswith(language.example_suffixes or "\0"))
    return find_file_language(path) or next(with_examples, None)


def find_test_language(path: str) -> Language | None:
    """Return the language of a test file, or of a source file that supports tests; None for any other file."""
    test_language = next((language for language in list_languages() if language.is_test_path(path)), None)
    if test_language or not in_test_directory(path):
        return test_language
    return find_file_language(path)


def is_test_path(path: str) -> bool:
    """Return whether a path belongs to the tests of the tree: as a test, as support code or as data that tests read."""
    return in_test_directory(path) or bool(_TEST_DATA.search(path)) or find_test_language(path) is not None


def is_test_support(path: str) -> bool:
    """Return whether a file of this name supports tests but contains none, such as a `conftest.py`."""
    name = path.rpartition("/")[2]
    return any(name in language.support_names for language in list_languages())


def list_module_suffixes() -> tuple[str, ...]:
    """Return the suffixes of files whose tests may be identified by a dotted module name."""
    return tuple(language.module_suffix for language in list_languages() if language.module_suffix)


def get_dotted_module(path: str) -> str:
    """Return the dotted module name of a file; empty if its language has none."""
    suffix = next((suffix for suffix in list_module_suffixes() if path.endswith(suffix)), "")
    return path.removesuffix(suffix).replace("/", ".") if suffix else ""


def in_test_directory(path: str) -> bool:
    return bool(_TEST_DIRECTORY.search(path))


def _create_language(entry: object) -> object:
    return entry if isinstance(entry, Language) else cast("type[Language]", entry)()
