"""Support any runner that writes JUnit XML: the reports are collected inside the sandbox and read here."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from pydantic import ValidationError

from redstart.core.errors import ConfigError
from redstart.core.frozen import FrozenValue
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Completed, Environment, Variation
from redstart.toolkit.suites.detection.command import with_interpreter
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file

COLLECTOR = "collect_reports.py"
REPORTS = "reports.json"


class GatheredReports(FrozenValue):
    """The reports of a run: path to text, in path order."""

    reports: dict[str, str] = {}
    whole: bool = True
    """Whether all reports are included. Reports that are too large or too many are left out."""


def build_request(suite: Suite, environment: Environment, *, variation: Variation = PINNED) -> SuiteRequest:
    """Build the request that runs the user's whole command, since a foreign runner may not accept IDs as arguments.

    Reports from before the run do not count. Raises `ConfigError` if there is no command, or if the reports would lie
    outside the suite's directory.
    """
    path = PurePosixPath(suite.junit)
    if not suite.command:
        raise ConfigError("--junit needs a command that writes the report", remedy='--test-cmd "..." --junit PATH')
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(
            f"{suite.junit} is outside the directory of the tests",
            remedy="give the path of the JUnit XML relative to it, as in --junit build/test-results/*.xml",
        )
    start = (environment.python, f"{IN}/{COLLECTOR}", f"{OUT}/{REPORTS}", suite.junit)
    argv = (*start, *with_interpreter(suite.command, environment))
    return SuiteRequest(argv, variation.variables, {COLLECTOR: read_sandbox_file(COLLECTOR)}, (REPORTS,))


def read_reports(completed: Completed) -> GatheredReports:
    """Read the reports that the run lists. Empty if the list cannot be read."""
    try:
        return GatheredReports.model_validate(json.loads(completed.files.get(REPORTS, "{}")))
    except (ValueError, ValidationError, RecursionError):
        return GatheredReports()
