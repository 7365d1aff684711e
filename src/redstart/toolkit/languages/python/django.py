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
from redstart.core.shell import PINNED, Environment, Variation
from redstart.toolkit.languages.python import unittest
from redstart.toolkit.languages.python.sentinel import with_sentinel
from redstart.toolkit.suites.request import JUNIT, SuiteRequest

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
    remaining = list(argv)
    for launcher in _LAUNCHERS:
        if tuple(remaining[: len(launcher)]) == launcher:
            remaining = remaining[len(launcher) :]
            break
    variables: dict[str, str] = {}
    while remaining and _ASSIGNMENT.match(remaining[0]):
        name, _, value = remaining.pop(0).partition("=")
        variables[name] = value
    if remaining and PurePosixPath(remaining[0]).name.startswith("python"):
        remaining.pop(0)
    options: list[str] = []
    while remaining and remaining[0].startswith("-") and remaining[0] not in ("-m", "-c"):
        options += [remaining.pop(0)]
        if options[-1] in _VALUED and remaining:
            options += [remaining.pop(0)]
    if len(remaining) < 2 or PurePosixPath(remaining[0]).name != MANAGE or remaining[1] != "test":
        return None
    return ManageCommand(variables, tuple(options), remaining[0], tuple(remaining[2:]))


def build_django_request(
    suite: Suite,
    environment: Environment,
    *,
    ids: Sequence[str] = (),
    sentinel: Sequence[str] = (),
    variation: Variation = PINNED,
) -> SuiteRequest:
    """Build the request that runs the whole suite or only `ids`, and checks where the `sentinel` packages come from.

    A command other than `manage.py test` runs unchanged and leaves no results per test.
    """
    manage_command = parse_command(suite.command or ("python", MANAGE, "test"))
    if manage_command is None:
        return SuiteRequest(suite.command, variation.variables, {}, (JUNIT,))
    own_options, files = unittest.report_options(ids, variation)
    script, own_files = unittest.choose_script(suite, RUNNER)
    start = (environment.python, *manage_command.interpreter_options, *script, *own_options)
    argv = (*start, "--", manage_command.manage, "test", *manage_command.arguments)
    variables = {**manage_command.variables, **variation.variables}
    request = SuiteRequest(argv, variables, {**files, **own_files}, (JUNIT,))
    return with_sentinel(request, sentinel, environment) if sentinel else request


def list_labels(arguments: Sequence[str]) -> tuple[str, ...]:
    """List the apps, modules, classes or tests that the arguments of `manage.py test` name; empty for everything."""
    labels: list[str] = []
    is_value = False
    for arg in arguments:
        if not arg.startswith("-") and not is_value:
            labels.append(arg)
        is_value = arg in _VALUED_OPTIONS
    return tuple(labels)
