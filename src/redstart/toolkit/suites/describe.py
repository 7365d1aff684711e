"""What runs the tests, in a user's words."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

from redstart.core.noun import clip
from redstart.core.run import Suite
from redstart.core.shell import Environment
from redstart.core.visible import one_line
from redstart.toolkit.suites.command import with_interpreter

LONGEST = 60
_NAMES = {"node": "node:test", "django": "Django tests"}


def describe_runner(suite: Suite) -> str:
    """The test runner, by the name that people know it by; the user's command where only its report is read."""
    if suite.junit:
        return clip(one_line(shlex.join(suite.command)), LONGEST)
    return _NAMES.get(suite.runner, suite.runner)


def describe_interpreter(suite: Suite, environment: Environment) -> str:
    """What the runner runs on: `node 20.20.2`, or `python (.venv in the project)`; empty where that is not known."""
    if suite.is_node:
        return environment.chosen
    if suite.junit and with_interpreter(suite.command, environment) == suite.command:
        return ""
    name = PurePosixPath(environment.python).name
    return f"{name} ({environment.chosen})" if environment.chosen else name
