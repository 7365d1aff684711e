"""Any runner that writes JUnit XML: its command is run, and what it wrote is gathered inside and read here."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from pydantic import ValidationError

from redstart.core.errors import ConfigError
from redstart.core.noun import FrozenValue
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Completed, Environment, Variation
from redstart.toolkit.suites.detection.command import with_interpreter
from redstart.toolkit.suites.request import SuiteRequest, inside

COLLECTOR = "collect_reports.py"
REPORTS = "reports.json"


class GatheredReports(FrozenValue):
    """What a run left: path to text, in the order of the paths."""

    reports: dict[str, str] = {}
    whole: bool = True
    """Whether that is all of it: reports that are too large or too many are left out."""


def command(suite: Suite, environment: Environment, *, vary: Variation = PINNED) -> SuiteRequest:
    """The request that runs the user's command, whole: such a runner's ids are not known to be arguments of it.

    Reports that lie there before do not count. Raises `ConfigError` where there is no command, or where the reports
    would lie outside of the suite's folder.
    """
    path = PurePosixPath(suite.junit)
    if not suite.command:
        raise ConfigError("--junit needs a command that writes the report", remedy='--test-cmd "..." --junit PATH')
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(
            f"{suite.junit} is outside of the directory of the tests",
            remedy="give the path of the JUnit XML relative to it, as in --junit build/test-results/*.xml",
        )
    start = (environment.python, f"{IN}/{COLLECTOR}", f"{OUT}/{REPORTS}", suite.junit)
    argv = (*start, *with_interpreter(suite.command, environment))
    return SuiteRequest(argv, vary.variables, {COLLECTOR: inside(COLLECTOR)}, (REPORTS,))


def gathered(completed: Completed) -> GatheredReports:
    """What the run says that it left; nothing where it says nothing that can be read."""
    try:
        return GatheredReports.model_validate(json.loads(completed.files.get(REPORTS, "{}")))
    except (ValueError, ValidationError, RecursionError):
        return GatheredReports()
