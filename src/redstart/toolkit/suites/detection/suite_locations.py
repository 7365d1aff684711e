"""Locate the test suites of a tree: one for the whole tree, or one for each project of a monorepo."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.toolkit.languages.protocol import Read, SuitePlace
from redstart.toolkit.languages.registry import list_languages

__all__ = ["SuitePlace", "list_suites", "place_in"]


def place_in(folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
    """Find a directory's suite in the first language that has one there. None if there is none."""
    suites = (language.find_suite(folder, paths, read) for language in list_languages())
    return next((place for place in suites if place), None)


def list_suites(paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
    """List the suites of a tree, by directory. If the root has tests, its suite is the only one.

    Otherwise each directory that is a project and contains tests is a suite. A project inside another project's tests
    is their data. A language counts only if no earlier language has tests in the root.
    """
    places: dict[str, SuitePlace] = {}
    for language in list_languages():
        if "" not in places:
            language_suites = {place.folder: place for place in language.find_suites(paths, read)}
            places |= {folder: place for folder, place in language_suites.items() if folder not in places}
    return tuple(places.values())
