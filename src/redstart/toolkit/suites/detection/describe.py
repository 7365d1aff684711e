"""Describes to the user what runs the tests."""

from __future__ import annotations

import shlex

from redstart.core.noun import clip
from redstart.core.run import Suite
from redstart.core.shell import Environment
from redstart.core.visible import one_line
from redstart.toolkit.languages.registry import language_of_runner
from redstart.toolkit.suites.detection.command import with_interpreter
from redstart.toolkit.suites.runner import runner_of

LONGEST = 60


def describe_runner(suite: Suite) -> str:
    """Return the test runner's common name, or the user's command if only its report is read."""
    if suite.junit:
        return clip(one_line(shlex.join(suite.command)), LONGEST)
    runner = runner_of(suite)
    return runner.describe(suite) if runner else suite.runner


def describe_interpreter(suite: Suite, environment: Environment) -> str:
    """Return what the runner runs on: `node 20.20.2` or `python (.venv in the project)`. Empty if unknown."""
    if suite.junit and with_interpreter(suite.command, environment) == suite.command:
        return ""
    language = language_of_runner(suite.runner)
    return language.runner.describe_interpreter(suite, environment) if language and language.runner else ""
