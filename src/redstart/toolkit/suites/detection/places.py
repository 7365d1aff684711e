"""Where in a tree suites of tests lie: one for the whole of it, or one for each project of a monorepo."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.toolkit.languages.protocol import Read, SuitePlace
from redstart.toolkit.languages.registry import languages

__all__ = ["SuitePlace", "place_in", "suites_in"]


def place_in(folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
    """The suite of a folder, in the first language that has one there; None where it has none."""
    found = (language.suite_in(folder, paths, read) for language in languages())
    return next((place for place in found if place), None)


def suites_in(paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
    """The suites of a tree, by folder. There is one, the root's, where the root has tests.

    Otherwise each folder that is a project and holds tests is one. A project inside another's tests is their data. A
    language counts where none before it has tests in the root.
    """
    places: dict[str, SuitePlace] = {}
    for language in languages():
        if "" not in places:
            own = {place.folder: place for place in language.suites_of(paths, read)}
            places |= {folder: place for folder, place in own.items() if folder not in places}
    return tuple(places.values())
