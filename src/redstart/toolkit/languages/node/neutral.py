"""Runs the test files of node's own runner with plain `node FILE`, outside a test run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, Completed
from redstart.toolkit.honesty.examine import GreenPatch
from redstart.toolkit.honesty.neutral_surroundings import (
    HOST,
    PLAUSIBLE,
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
from redstart.toolkit.languages.node import CASE_MARK
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import SuiteRequest, inside
from redstart.toolkit.suites.view import TreeView

START, PLAN = "start.cjs", "plan.json"
MOST_FILES = 500

NEAR = Surroundings(frozenset({Dimension.environment, Dimension.host, Dimension.path, Dimension.layout}))
FAR = Surroundings(NEAR.applied | {Dimension.age})

_SOURCE = re.compile(r"\.[cm]?js$")


def calls_node(suite: Suite) -> bool:
    """Return whether plain node can run the suite's files: node's own runner, without a loader or other options."""
    options = [word for word in suite.command[1:] if word.startswith("-") and not word.startswith("--test")]
    return suite.runner == "node" and suite.command[:1] in ((), ("node",)) and not options


class NodeDriver:
    """Runs each test file as a program with node."""

    variants = (NEAR, FAR)

    def __init__(self, green: GreenPatch, view: TreeView) -> None:
        self._green, self._view = green, view
        self.loaded = WORDS[Dimension.runner]
        plausible = {**PLAUSIBLE, "NODE_ENV": "production"}
        self._variables = unused_variables(self._texts(), plausible)

    def request(self, tests: Sequence[str], seconds: float, surroundings: Surroundings) -> SuiteRequest:
        environment, suite = self._green.environment, self._green.suite
        applied = surroundings.applied
        plan = {
            "tests": [{"id": test, "file": self.file_of(test), "titles": _titles(test)} for test in tests],
            "applied": sorted(applied),
            "mount": environment.mount,
            "folder": suite.folder,
            "kept": kept_folders(environment),
            "variables": self._variables,
            "own_variables": plain_variables(environment.variables),
            "seconds": seconds,
        }
        as_tested = runner.request(suite, environment, tests).variables
        return SuiteRequest(
            ("node", f"{IN}/{START}", IN, OUT),
            {} if Dimension.environment in applied else as_tested,
            {START: inside("redstart_neutral.cjs"), PLAN: json.dumps(plan)},
            (STATE,),
            HOST if Dimension.host in applied else "",
        )

    def read(self, completed: Completed, tests: Sequence[str]) -> dict[str, CallResult]:
        return read_results(completed, tests)

    def file_of(self, test: str) -> str:
        return test.partition("::")[0]

    def text_of(self, test: str) -> str:
        return (self._view.read(self.file_of(test)) or b"").decode(errors="replace")

    def is_alike(self, case: Case, result: CallResult) -> bool:
        """Return whether the test fails at all: node reports the location only as text."""
        return case.red and result.outcome == "failed"

    def _texts(self) -> Iterable[str]:
        paths = [path for path in sorted(self._view.kept) if _SOURCE.search(path)]
        for path in paths[:MOST_FILES]:
            yield (self._view.read(path) or b"").decode(errors="replace")


def _titles(test: str) -> str:
    return CASE_MARK.sub("", test.partition("::")[2])
