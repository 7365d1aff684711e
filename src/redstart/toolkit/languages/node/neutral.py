"""Run the test files of node's own runner with plain `node FILE`, outside a test run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, Completed
from redstart.toolkit.honesty.examination import GreenPatch
from redstart.toolkit.honesty.neutral_surroundings import (
    APPLICATION_VARIABLES,
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
from redstart.toolkit.languages.node import CASE_MARK
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file
from redstart.toolkit.suites.suite_directory import TreeView

START, PLAN = "start.cjs", "plan.json"
MOST_FILES = 500

NEAR_SURROUNDINGS = Surroundings(frozenset({Dimension.environment, Dimension.host, Dimension.path, Dimension.layout}))
FAR_SURROUNDINGS = Surroundings(NEAR_SURROUNDINGS.applied | {Dimension.age})

_SOURCE = re.compile(r"\.[cm]?js$")


def can_run_with_node(suite: Suite) -> bool:
    """Return whether plain node can run the suite's files: node's own runner, without a loader or other options."""
    options = [arg for arg in suite.command[1:] if arg.startswith("-") and not arg.startswith("--test")]
    return suite.runner == "node" and suite.command[:1] in ((), ("node",)) and not options


class NodeDriver:
    """Runs each test file as a program with node."""

    variants = (NEAR_SURROUNDINGS, FAR_SURROUNDINGS)

    def __init__(self, patch: GreenPatch, view: TreeView) -> None:
        self._green_patch, self._view = patch, view
        self.runner_condition = DIMENSION_CONDITIONS[Dimension.runner]
        plausible_variables = {**APPLICATION_VARIABLES, "NODE_ENV": "production"}
        self._variables = select_unused_variables(self._read_sources(), plausible_variables)

    def request(self, tests: Sequence[str], seconds: float, surroundings: Surroundings) -> SuiteRequest:
        environment, suite = self._green_patch.environment, self._green_patch.suite
        applied = surroundings.applied
        plan = {
            "tests": [{"id": test, "file": self.find_file(test), "titles": _extract_titles(test)} for test in tests],
            "applied": sorted(applied),
            "mount": environment.mount,
            "folder": suite.folder,
            "kept": list_installed_folders(environment),
            "variables": self._variables,
            "own_variables": drop_test_variables(environment.variables),
            "seconds": seconds,
        }
        test_variables = runner.request(suite, environment, tests).variables
        return SuiteRequest(
            ("node", f"{IN}/{START}", IN, OUT),
            {} if Dimension.environment in applied else test_variables,
            {START: read_sandbox_file("redstart_neutral.cjs"), PLAN: json.dumps(plan)},
            (STATE,),
            HOST if Dimension.host in applied else "",
        )

    def read(self, completed: Completed, tests: Sequence[str]) -> dict[str, CallResult]:
        return read_results(completed, tests)

    def find_file(self, test: str) -> str:
        return test.partition("::")[0]

    def read_text(self, test: str) -> str:
        return (self._view.read(self.find_file(test)) or b"").decode(errors="replace")

    def is_same_failure(self, case: Case, result: CallResult) -> bool:
        """Return whether the test fails at all: node reports the location only as text."""
        return case.is_red and result.outcome == "failed"

    def _read_sources(self) -> Iterable[str]:
        paths = [path for path in sorted(self._view.snapshot_paths) if _SOURCE.search(path)]
        for path in paths[:MOST_FILES]:
            yield (self._view.read(path) or b"").decode(errors="replace")


def _extract_titles(test: str) -> str:
    return CASE_MARK.sub("", test.partition("::")[2])
