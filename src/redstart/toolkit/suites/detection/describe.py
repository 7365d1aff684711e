"""Describe to the user what runs the tests."""

from __future__ import annotations

import shlex

from redstart.core.frozen import clip
from redstart.core.run import Suite
from redstart.core.safe_text import to_one_line
from redstart.core.shell import Environment
from redstart.toolkit.languages.registry import find_runner_language
from redstart.toolkit.suites.detection.command import with_interpreter
from redstart.toolkit.suites.runner import get_suite_runner

LONGEST = 60


def describe_runner(suite: Suite) -> str:
    """Return the test runner's common name, or the user's command if only its report is read."""
    if suite.junit:
        return clip(to_one_line(shlex.join(suite.command)), LONGEST)
    runner = get_suite_runner(suite)
    return runner.describe(suite) if runner else suite.runner


def describe_interpreter(suite: Suite, environment: Environment) -> str:
    """Return what the runner runs on: `node 20.20.2` or `python (.venv in the project)`. Empty if unknown."""
    if suite.junit and with_interpreter(suite.command, environment) == suite.command:
        return ""
    language = find_runner_language(suite.runner)
    return language.runner.describe_interpreter(suite, environment) if language and language.runner else ""
