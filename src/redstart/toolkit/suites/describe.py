"""What runs the tests, in a user's words."""

from __future__ import annotations

from pathlib import PurePosixPath

from redstart.core.run import Suite
from redstart.core.shell import Environment

_NAMES = {"node": "node:test", "django": "Django tests"}


def describe_runner(suite: Suite) -> str:
    """The test runner, by the name that people know it by."""
    return _NAMES.get(suite.runner, suite.runner)


def describe_interpreter(suite: Suite, environment: Environment) -> str:
    """What the runner runs on: `node 20.20.2`, or `python (.venv in the project)`."""
    if suite.is_node:
        return environment.chosen
    name = PurePosixPath(environment.python).name
    return f"{name} ({environment.chosen})" if environment.chosen else name
