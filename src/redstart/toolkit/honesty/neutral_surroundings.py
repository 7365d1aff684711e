"""Surroundings that do not look like a test run, and the request that calls tests in them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from redstart.core.noun import Noun
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, Completed, Environment
from redstart.ports.sandbox.mounts import HOST_NAME
from redstart.toolkit.honesty.neutral_addresses import CaseAddress
from redstart.toolkit.suites import bundled_pytest, runner
from redstart.toolkit.suites.request import Request, inside

PLAN, STATE = "plan.json", "state.json"
FILES = {
    "start.py": "redstart_neutral.py",
    "serve.py": "redstart_neutral_serve.py",
    "cases.py": "redstart_neutral_cases.py",
    "parameters.py": "redstart_neutral_parameters.py",
    "fixtures.py": "redstart_neutral_fixtures.py",
    "clock.py": "redstart_neutral_clock.py",
}
"""Inside they have names that any application may have."""
HOST = "web-2"
DAYS_AHEAD = 4500
PLAUSIBLE = {
    "HOME": "",
    "USER": "app",
    "LOGNAME": "app",
    "SHELL": "/bin/sh",
    "PORT": "8080",
    "APP_ENV": "production",
    "LOG_LEVEL": "info",
}
"""Variables of a service; its home is made for it."""

_OF_A_TEST_RUN = re.compile(
    r"(?:PYTEST|REDSTART|TOX|NOX|CI$|CI_|GITHUB_|GITLAB_|JENKINS|TRAVIS|BUILD_|COV|HYPOTHESIS|PYTHONHASHSEED"
    r"|PYTHONDONTWRITEBYTECODE)"
)


class Dimension(StrEnum):
    """What of the surroundings is other than in a test run; those that most often tell a test run come first."""

    environment = "environment"
    runner = "runner"
    arguments = "arguments"
    streams = "streams"
    logging = "logging"
    host = "host"
    clock = "clock"
    folder = "folder"
    path = "path"


WORDS = {
    Dimension.environment: "the environment variables are those of a test run",
    Dimension.runner: "the test runner is loaded",
    Dimension.arguments: "the command line is that of a test runner",
    Dimension.streams: "standard input and output are those of a test run",
    Dimension.logging: "logging is set up as in a test run",
    Dimension.host: f"the host is named {HOST_NAME}",
    Dimension.clock: "the clock shows a date near today's",
    Dimension.folder: "the working directory is the project's",
    Dimension.path: "the project lies where the tests run",
}
"""What follows on `passes only when`."""


class Surroundings(NamedTuple):
    applied: frozenset[Dimension]
    configures_logging: bool = False
    """Whether logging is set up as an application does it; otherwise nobody has set it up."""

    def without(self, dimension: Dimension) -> Surroundings:
        return self._replace(applied=self.applied - {dimension})


NEAR = Surroundings(frozenset(Dimension) - {Dimension.clock, Dimension.folder})
FAR = Surroundings(frozenset(Dimension), configures_logging=True)


class CallResult(Noun):
    """What became of one test that was called plainly."""

    outcome: Literal["passed", "failed", "unsupported"]
    reason: str = ""
    type: str = ""
    line: int = 0
    """In the test's file; 0 where the exception did not pass through it."""
    text: str = ""


class _State(Noun):
    results: dict[str, CallResult] = Field(default={})
    late: bool = False


LOST = CallResult(outcome="failed", reason="the process ended before it")
LATE = CallResult(outcome="unsupported", reason="it does not end in time")


class Call(NamedTuple):
    """What to call, and where it is at home."""

    suite: Suite
    environment: Environment
    tests: Sequence[CaseAddress]
    variables: Mapping[str, str]
    """Of `PLAUSIBLE`, those that the project does not use itself."""
    seconds: float
    django: str = ""
    """The settings module, for a suite of Django's."""


def neutral_request(call: Call, surroundings: Surroundings) -> Request:
    """The request that calls these tests in these surroundings and leaves what became of each."""
    environment, applied = call.environment, surroundings.applied
    as_tested = runner.request(call.suite, environment, [address.id for address in call.tests])
    lent = environment.variables.get(bundled_pytest.VARIABLE)
    plan = {
        "tests": [address._asdict() for address in call.tests],
        "runner": call.suite.runner,
        "applied": sorted(applied),
        "mount": environment.mount,
        "folder": call.suite.folder,
        "kept": [path for path in environment.read_only if PurePosixPath(path).is_relative_to(environment.mount)],
        "variables": dict(call.variables),
        "own_variables": plain_variables(environment.variables),
        "arguments": [word.replace(IN, "in").replace(OUT, "out") for word in as_tested.argv[1:]],
        "days_ahead": DAYS_AHEAD,
        "configures_logging": surroundings.configures_logging,
        "lent": [lent] if lent else [],
        "django": call.django,
        "seconds": call.seconds,
        "files": [name for name in FILES if name != "start.py"],
    }
    files = {name: inside(source) for name, source in FILES.items()}
    return Request(
        (environment.python, f"{IN}/start.py", IN, OUT),
        {} if Dimension.environment in applied else as_tested.variables,
        {**files, PLAN: json.dumps(plan)},
        (STATE,),
        HOST if Dimension.host in applied else "",
    )


def plain_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that tell of no test run."""
    return {name: value for name, value in variables.items() if not _OF_A_TEST_RUN.match(name)}


def unused_variables(texts: Iterable[str]) -> dict[str, str]:
    """The plausible variables that none of these texts speaks of: another value of those would be another input."""
    names = "|".join(PLAUSIBLE)
    spoken = {name for text in texts for name in re.findall(rf"\b({names})\b", text)}
    return {name: value for name, value in PLAUSIBLE.items() if name not in spoken}


def read_results(completed: Completed, tests: Collection[str]) -> dict[str, CallResult]:
    """What became of each of these tests."""
    try:
        state = _State.model_validate_json(completed.files.get(STATE, ""))
    except ValidationError:
        state = _State()
    missing = LATE if state.late else LOST
    return {test: state.results.get(test, missing) for test in tests}
