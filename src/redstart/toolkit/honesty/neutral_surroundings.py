"""Surroundings that do not look like a test run, and the interface of a driver that calls tests in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, Protocol

from pydantic import Field, ValidationError

from redstart.core.frozen import FrozenValue
from redstart.core.report import Case
from redstart.core.shell import HOST_NAME, Completed, Environment
from redstart.toolkit.suites.request import SuiteRequest

STATE = "state.json"
"""The result file that a driver writes."""
HOST = "web-2"
APPLICATION_VARIABLES = {
    "HOME": "",
    "USER": "app",
    "LOGNAME": "app",
    "SHELL": "/bin/sh",
    "PORT": "8080",
    "APP_ENV": "production",
    "LOG_LEVEL": "info",
}
"""Environment variables of a typical service; its home directory is created for it."""

_TEST_RUN_VARIABLE = re.compile(
    r"(?:PYTEST|REDSTART|TOX|NOX|CI$|CI_|GITHUB_|GITLAB_|JENKINS|TRAVIS|BUILD_|COV|HYPOTHESIS|PYTHONHASHSEED"
    r"|PYTHONDONTWRITEBYTECODE)"
)


class Dimension(StrEnum):
    """A dimension in which the surroundings differ from a test run; those that most often reveal one come first."""

    environment = "environment"
    runner = "runner"
    arguments = "arguments"
    streams = "streams"
    logging = "logging"
    host = "host"
    clock = "clock"
    age = "age"
    layout = "layout"
    folder = "folder"
    path = "path"


DIMENSION_CONDITIONS = {
    Dimension.environment: "the environment variables are those of a test run",
    Dimension.runner: "the test runner is loaded",
    Dimension.arguments: "the command line is that of a test runner",
    Dimension.streams: "standard input and output are those of a test run",
    Dimension.logging: "logging is set up as in a test run",
    Dimension.host: f"the host is that of a test run ({HOST_NAME})",
    Dimension.clock: "the clock shows a date near today's",
    Dimension.age: "the process has just started",
    Dimension.layout: "the tests lie beside the code",
    Dimension.folder: "the working directory is the project's",
    Dimension.path: "the project lies where the tests run",
}
"""Descriptions that follow `passes only when`."""


class Surroundings(NamedTuple):
    applied: frozenset[Dimension]
    configures_logging: bool = False
    """Whether logging is configured as an application does it; otherwise it is not configured."""

    def reset_dimension(self, dimension: Dimension) -> Surroundings:
        """Reset one dimension to its value in a test run; `folder` also resets `layout`: the tests beside the code."""
        restored = {dimension, Dimension.layout} if dimension is Dimension.folder else {dimension}
        return self._replace(applied=self.applied - restored)


class CallResult(FrozenValue):
    """The result of one test that was called without a runner."""

    outcome: Literal["passed", "failed", "unsupported"]
    reason: str = ""
    type: str = ""
    line: int = 0
    """The line in the test's file; 0 if the exception did not pass through it."""
    text: str = ""


class _State(FrozenValue):
    results: dict[str, CallResult] = Field(default={})
    late: bool = False


PROCESS_ENDED = CallResult(outcome="failed", reason="the process ended before it")
TIMED_OUT = CallResult(outcome="unsupported", reason="it does not end in time")


class NeutralDriver(Protocol):
    """Calls the tests of one language without their runner."""

    variants: tuple[Surroundings, ...]
    """The default surroundings for calls, followed by more distant ones."""
    runner_condition: str
    """The condition of a test that passes only in a test run, to follow `only when`: `pytest is loaded`."""

    def request(self, tests: Sequence[str], seconds: float, surroundings: Surroundings) -> SuiteRequest: ...

    def read(self, completed: Completed, tests: Sequence[str]) -> dict[str, CallResult]:
        """Read the result of each of these tests."""
        ...

    def find_file(self, test: str) -> str:
        """Return the test's file, relative to the suite's directory; empty if there is none."""
        ...

    def read_text(self, test: str) -> str:
        """Return the text of that file in the original code."""
        ...

    def is_same_failure(self, case: Case, result: CallResult) -> bool:
        """Return whether a test fails as it did at the baseline."""
        ...


def drop_test_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Drop variables that reveal a test run."""
    return {name: value for name, value in variables.items() if not _TEST_RUN_VARIABLE.match(name)}


def select_unused_variables(
    texts: Iterable[str], plausible: Mapping[str, str] = APPLICATION_VARIABLES
) -> dict[str, str]:
    """Return the plausible variables that no text mentions: another value of a mentioned one would change the input."""
    names = "|".join(plausible)
    mentioned = {name for text in texts for name in re.findall(rf"\b({names})\b", text)}
    return {name: value for name, value in plausible.items() if name not in mentioned}


def read_results(completed: Completed, tests: Sequence[str]) -> dict[str, CallResult]:
    """Read a driver's results for each of these tests."""
    try:
        state = _State.model_validate_json(completed.files.get(STATE, ""))
    except ValidationError:
        state = _State()
    missing = TIMED_OUT if state.late else PROCESS_ENDED
    return {test: state.results.get(test, missing) for test in tests}


def list_installed_folders(environment: Environment) -> list[str]:
    """List paths in the mount that are not part of the snapshot, such as installed packages: they are not copied."""
    return [path for path in environment.read_only if PurePosixPath(path).is_relative_to(environment.mount)]
