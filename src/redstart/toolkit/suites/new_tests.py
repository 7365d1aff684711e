"""A test file that is new, beside a command that names the files it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redstart.core.run import Suite
from redstart.toolkit.suites import django, node, pytest
from redstart.toolkit.suites.command import end_of_start
from redstart.toolkit.suites.unittest import unittest_arguments


def include_tests(suite: Suite, files: Iterable[str]) -> tuple[str, ...]:
    """The suite's command with these files of the snapshot in it; empty where it runs them without being changed.

    A command that only starts a runner, such as `make test`, stays as it is: nothing can be added to it.
    """
    shown = [suite.as_shown(path) for path in sorted(files) if not path.endswith(("conftest.py", "__init__.py"))]
    added = _words(suite, shown) if suite.command else []
    return (*suite.command, *added) if added else ()


def _words(suite: Suite, files: Sequence[str]) -> list[str]:
    """What is to be added to the command."""
    words = suite.command
    if suite.junit:
        return []
    if suite.runner == "pytest":
        end = end_of_start(words, "pytest", "py.test")
        return _beside(pytest.named_paths(words[end:]), files) if end else []
    if suite.runner == "unittest":
        found = unittest_arguments(words)
        named = [word for word in found[1] if not word.startswith("-")] if found else []
        return [] if not named or named[0] == "discover" else _beside(named, files)
    if suite.runner == "django":
        manage = django.parse_command(words)
        labels = django.labels_in(manage.arguments) if manage else ()
        return _beside([label.replace(".", "/") for label in labels], files, dotted=True)
    if suite.runner in node.RUNNERS:
        return _beside(node.named_paths(words), files)
    return []


def _beside(named: Sequence[str], files: Sequence[str], *, dotted: bool = False) -> list[str]:
    """The files that none of the named files and directories holds; none where nothing is named."""
    places = [name.removeprefix("./").rstrip("/") for name in named]
    if not places or any(place in ("", ".") for place in places):
        return []
    left = [file for file in files if not any(file == place or file.startswith(f"{place}/") for place in places)]
    return [file.removesuffix(".py").replace("/", ".") for file in left] if dotted else left
