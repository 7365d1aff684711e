"""Start `manage.py test` of a Django project so that it leaves a report we can read.

manage.py runs as usual, with the project's own interpreter; a small file of ours records the results. Nothing is
installed in the project's environment. Tested with Django 3.2, 4.2 and 5.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.core.run import Suite
from redstart.core.shell import IN, PINNED, Environment, Variation
from redstart.toolkit.languages.python import unittest
from redstart.toolkit.languages.python.sentinel import with_sentinel
from redstart.toolkit.suites.request import JUNIT, SuiteRequest, inside

RUNNER = "redstart_django.py"
MANAGE = "manage.py"

_USES_DJANGO = re.compile(rb"DJANGO_SETTINGS_MODULE|django\.core\.management")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_VALUED = frozenset(("-W", "-X"))
_LAUNCHERS = (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("env",))
_VALUED_OPTIONS = frozenset(
    (
        *("-k", "-p", "-t", "-v", "--exclude-tag", "--pattern", "--pythonpath", "--settings", "--tag", "--testrunner"),
        *("--top-level-directory", "--verbosity"),
    )
)
"""Options of `manage.py test` that take the next word as their value."""


class ManageCommand(NamedTuple):
    """The parts of a command that runs `manage.py test`."""

    variables: dict[str, str]
    interpreter_options: tuple[str, ...]
    manage: str
    arguments: tuple[str, ...]
    """The words after `test`."""


def is_django_manage(text: bytes) -> bool:
    """Whether the content of a manage.py belongs to a Django project."""
    return bool(_USES_DJANGO.search(text))


def parse_command(argv: Sequence[str]) -> ManageCommand | None:
    """Split `python manage.py test ...` into its parts, also behind `uv run` etc.; None for any other command."""
    words = list(argv)
    for launcher in _LAUNCHERS:
        if tuple(words[: len(launcher)]) == launcher:
            words = words[len(launcher) :]
            break
    variables: dict[str, str] = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if words and PurePosixPath(words[0]).name.startswith("python"):
        words.pop(0)
    options: list[str] = []
    while words and words[0].startswith("-") and words[0] not in ("-m", "-c"):
        options += [words.pop(0)]
        if options[-1] in _VALUED and words:
            options += [words.pop(0)]
    if len(words) < 2 or PurePosixPath(words[0]).name != MANAGE or words[1] != "test":
        return None
    return ManageCommand(variables, tuple(options), words[0], tuple(words[2:]))


def command(
    suite: Suite,
    environment: Environment,
    *,
    ids: Sequence[str] = (),
    sentinel: Sequence[str] = (),
    vary: Variation = PINNED,
) -> SuiteRequest:
    """Build the request that runs the whole suite or only `ids`, and checks where the `sentinel` packages come from.

    A command other than `manage.py test` runs unchanged and leaves no results per test.
    """
    given = parse_command(suite.command or ("python", MANAGE, "test"))
    if given is None:
        return SuiteRequest(suite.command, vary.variables, {}, (JUNIT,))
    ours, files = unittest.report_options(ids, vary)
    start = (environment.python, *given.interpreter_options, f"{IN}/{RUNNER}", *ours)
    argv = (*start, "--", given.manage, "test", *given.arguments)
    files |= {RUNNER: inside(RUNNER), unittest.RUNNER: inside(unittest.RUNNER)}
    request = SuiteRequest(argv, {**given.variables, **vary.variables}, files, (JUNIT,))
    return with_sentinel(request, sentinel, environment) if sentinel else request


def labels_in(arguments: Sequence[str]) -> tuple[str, ...]:
    """List the apps, modules, classes or tests that the arguments of `manage.py test` name; empty for everything."""
    labels: list[str] = []
    is_value = False
    for word in arguments:
        if not word.startswith("-") and not is_value:
            labels.append(word)
        is_value = word in _VALUED_OPTIONS
    return tuple(labels)
