"""Call the tests of pytest, unittest and Django as plain functions, outside of a test run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from redstart.core.report import Case
from redstart.core.shell import IN, OUT, Completed
from redstart.toolkit.honesty.examine import GreenPatch
from redstart.toolkit.honesty.neutral_surroundings import (
    HOST,
    STATE,
    WORDS,
    CallResult,
    Dimension,
    Surroundings,
    kept_folders,
    plain_variables,
    read_results,
    unused_variables,
)
from redstart.toolkit.languages.python import bundled_pytest
from redstart.toolkit.languages.python.neutral_addresses import CaseAddress, address_of
from redstart.toolkit.languages.python.neutral_calibration import fails_alike
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import SuiteRequest, inside
from redstart.toolkit.suites.view import TreeView

PLAN = "plan.json"
START = "start.py"
FILES = {
    START: "redstart_neutral.py",
    "serve.py": "redstart_neutral_serve.py",
    "cases.py": "redstart_neutral_cases.py",
    "parameters.py": "redstart_neutral_parameters.py",
    "fixtures.py": "redstart_neutral_fixtures.py",
    "clock.py": "redstart_neutral_clock.py",
}
"""Driver files, under names that any application may have."""
DAYS_AHEAD = 4500
MOST_FILES = 500
"""The maximum number of files searched for variables that the project uses."""

NEAR = Surroundings(frozenset(Dimension) - {Dimension.clock, Dimension.folder, Dimension.age, Dimension.layout})
FAR = Surroundings(frozenset(Dimension), configures_logging=True)

_FINDS_FILES = re.compile(r"__file__|rootdir|fspath|Path\(|\bopen\(")
_SETTINGS = re.compile(r"""DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([\w.]+)""")


class PythonDriver:
    """Make the project's interpreter call each test function directly."""

    variants = (NEAR, FAR)

    def __init__(self, green: GreenPatch, view: TreeView) -> None:
        self._green, self._view = green, view
        self.loaded = "pytest is loaded" if green.suite.runner == "pytest" else WORDS[Dimension.runner]
        self._addresses: dict[str, CaseAddress] = {}
        self._variables = unused_variables(self._texts())
        settings = _SETTINGS.search(self._text("manage.py")) if green.suite.runner == "django" else None
        self._settings = settings[1] if settings else ""
        tests = {self.file_of(test) for test in green.targets} | {path for path in view.kept if "conftest" in path}
        self._finds_files = any(_FINDS_FILES.search(self._text(path)) for path in tests)
        """Whether tests locate files relative to their own path."""

    def request(self, tests: Sequence[str], seconds: float, surroundings: Surroundings) -> SuiteRequest:
        environment, suite = self._green.environment, self._green.suite
        applied = surroundings.applied - ({Dimension.layout} if self._finds_files else set())
        as_tested = runner.request(suite, environment, tests)
        lent = environment.variables.get(bundled_pytest.VARIABLE)
        plan = {
            "tests": [self._address(test)._asdict() for test in tests],
            "runner": suite.runner,
            "applied": sorted(applied),
            "mount": environment.mount,
            "folder": suite.folder,
            "kept": kept_folders(environment),
            "variables": self._variables,
            "own_variables": plain_variables(environment.variables),
            "arguments": [word.replace(IN, "in").replace(OUT, "out") for word in as_tested.argv[1:]],
            "days_ahead": DAYS_AHEAD,
            "configures_logging": surroundings.configures_logging,
            "lent": [lent] if lent else [],
            "django": self._settings,
            "seconds": seconds,
            "files": [name for name in FILES if name != START],
        }
        files = {name: inside(source) for name, source in FILES.items()}
        return SuiteRequest(
            (environment.python, f"{IN}/{START}", IN, OUT),
            {} if Dimension.environment in applied else as_tested.variables,
            {**files, PLAN: json.dumps(plan)},
            (STATE,),
            HOST if Dimension.host in applied else "",
        )

    def read(self, completed: Completed, tests: Sequence[str]) -> dict[str, CallResult]:
        return read_results(completed, tests)

    def file_of(self, test: str) -> str:
        return self._address(test).file

    def text_of(self, test: str) -> str:
        return self._text(self.file_of(test))

    def is_alike(self, case: Case, result: CallResult) -> bool:
        """Whether it is the same exception at the same statement of the test's file."""
        return fails_alike(case, result, self.file_of(case.id), self.text_of(case.id))

    def _address(self, test: str) -> CaseAddress:
        if test not in self._addresses:
            self._addresses[test] = address_of(test, self._view.kept)
        return self._addresses[test]

    def _text(self, path: str) -> str:
        return (self._view.read(path) or b"").decode(errors="replace")

    def _texts(self) -> Iterable[str]:
        """Iterate over the project's Python files, those that the patch changes first."""
        first = [*map(self._green.suite.as_shown, self._green.changed), *map(self.file_of, self._green.targets)]
        python = sorted(path for path in self._view.kept if path.endswith(".py"))
        for path in list(dict.fromkeys((*first, *python)))[:MOST_FILES]:
            yield self._text(path)
