"""Call the tests of pytest, unittest and Django as plain functions, outside of a test run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from redstart.core.report import Case
from redstart.core.shell import IN, OUT, Completed
from redstart.toolkit.honesty.examination import GreenPatch
from redstart.toolkit.honesty.neutral_surroundings import (
    DIMENSION_CONDITIONS,
    HOST,
    STATE,
    CallResult,
    Dimension,
    Surroundings,
    drop_test_variables,
    list_installed_folders,
    read_results,
    select_unused_variables,
)
from redstart.toolkit.languages.python import bundled_pytest
from redstart.toolkit.languages.python.neutral_addresses import CaseAddress, locate_test
from redstart.toolkit.languages.python.neutral_calibration import is_baseline_failure
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file
from redstart.toolkit.suites.suite_directory import TreeView

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

NEAR_SURROUNDINGS = Surroundings(
    frozenset(Dimension) - {Dimension.clock, Dimension.folder, Dimension.age, Dimension.layout}
)
FAR_SURROUNDINGS = Surroundings(frozenset(Dimension), configures_logging=True)

_FINDS_FILES = re.compile(r"__file__|rootdir|fspath|Path\(|\bopen\(")
_SETTINGS = re.compile(r"""DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([\w.]+)""")


class PythonDriver:
    """Make the project's interpreter call each test function directly."""

    variants = (NEAR_SURROUNDINGS, FAR_SURROUNDINGS)

    def __init__(self, patch: GreenPatch, view: TreeView) -> None:
        self._green_patch, self._view = patch, view
        self.runner_condition = (
            "pytest is loaded" if patch.suite.runner == "pytest" else DIMENSION_CONDITIONS[Dimension.runner]
        )
        self._addresses: dict[str, CaseAddress] = {}
        self._variables = select_unused_variables(self._read_sources())
        settings = _SETTINGS.search(self._read_file("manage.py")) if patch.suite.runner == "django" else None
        self._settings = settings[1] if settings else ""
        tests = {self.find_file(test) for test in patch.targets} | {
            path for path in view.snapshot_paths if "conftest" in path
        }
        self._finds_files = any(_FINDS_FILES.search(self._read_file(path)) for path in tests)
        """Whether tests locate files relative to their own path."""

    def request(self, tests: Sequence[str], seconds: float, surroundings: Surroundings) -> SuiteRequest:
        environment, suite = self._green_patch.environment, self._green_patch.suite
        applied = surroundings.applied - ({Dimension.layout} if self._finds_files else set())
        test_request = runner.request(suite, environment, tests)
        lent_pytest = environment.variables.get(bundled_pytest.VARIABLE)
        plan = {
            "tests": [self._locate_test(test)._asdict() for test in tests],
            "runner": suite.runner,
            "applied": sorted(applied),
            "mount": environment.mount,
            "folder": suite.folder,
            "kept": list_installed_folders(environment),
            "variables": self._variables,
            "own_variables": drop_test_variables(environment.variables),
            "arguments": [arg.replace(IN, "in").replace(OUT, "out") for arg in test_request.argv[1:]],
            "days_ahead": DAYS_AHEAD,
            "configures_logging": surroundings.configures_logging,
            "lent": [lent_pytest] if lent_pytest else [],
            "django": self._settings,
            "seconds": seconds,
            "files": [name for name in FILES if name != START],
        }
        files = {name: read_sandbox_file(source) for name, source in FILES.items()}
        return SuiteRequest(
            (environment.python, f"{IN}/{START}", IN, OUT),
            {} if Dimension.environment in applied else test_request.variables,
            {**files, PLAN: json.dumps(plan)},
            (STATE,),
            HOST if Dimension.host in applied else "",
        )

    def read(self, completed: Completed, tests: Sequence[str]) -> dict[str, CallResult]:
        return read_results(completed, tests)

    def find_file(self, test: str) -> str:
        return self._locate_test(test).file

    def read_text(self, test: str) -> str:
        return self._read_file(self.find_file(test))

    def is_same_failure(self, case: Case, result: CallResult) -> bool:
        """Whether it is the same exception at the same statement of the test's file."""
        return is_baseline_failure(case, result, self.find_file(case.id), self.read_text(case.id))

    def _locate_test(self, test: str) -> CaseAddress:
        if test not in self._addresses:
            self._addresses[test] = locate_test(test, self._view.snapshot_paths)
        return self._addresses[test]

    def _read_file(self, path: str) -> str:
        return (self._view.read(path) or b"").decode(errors="replace")

    def _read_sources(self) -> Iterable[str]:
        """Iterate over the project's Python files, those that the patch changes first."""
        priority_paths = [
            *map(self._green_patch.suite.to_runner_path, self._green_patch.changed),
            *map(self.find_file, self._green_patch.targets),
        ]
        python = sorted(path for path in self._view.snapshot_paths if path.endswith(".py"))
        for path in list(dict.fromkeys((*priority_paths, *python)))[:MOST_FILES]:
            yield self._read_file(path)
