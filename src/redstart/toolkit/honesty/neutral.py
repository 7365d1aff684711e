"""The neutral rerun: the targets once more, called plainly in surroundings that do not look like a test run.

A target that passes in a test run and fails in the neutral rerun may depend on being tested. Before this counts against
the patch, the same surroundings are tried on the original code: the target must fail there as at the baseline, and
tests of its file that passed must pass.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.report import CheckEvidence, Outcome
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.honesty.neutral_surroundings import (
    DIMENSION_CONDITIONS,
    CallResult,
    Dimension,
    NeutralDriver,
    Surroundings,
)
from redstart.toolkit.languages.registry import find_runner_language
from redstart.toolkit.suites.suite_directory import TreeView

CHECK = "neutral"
ACTIVITY = "neutral rerun"
MOST_TARGETS = 200
MOST_PASSING = 10
"""The most tests of the targets' files that must pass on the original code."""
FAILURES = 3
"""How many times in a row a target must fail."""
MOST_DROPPED = 5
"""The most dimensions that are dropped in turn if the original code does not behave as in a test run."""
MOST_NOTES = 20
SHORTEST, TIMEOUT_FACTOR = 30.0, 10.0
"""The minimum seconds for the called tests, and the factor on their time in the test run."""

DROPPED_FIRST = (
    Dimension.layout,
    Dimension.folder,
    Dimension.clock,
    Dimension.environment,
    Dimension.path,
    Dimension.streams,
    Dimension.runner,
    Dimension.arguments,
    Dimension.logging,
    Dimension.age,
    Dimension.host,
)
"""The dimensions, starting with those that honest tests most often need as in a test run."""

ALLOWED_DIMENSIONS = (Dimension.folder,)
"""Dimensions that honest code may depend on: a person decides."""

_TIME = re.compile(r"time|date|\bnow\b|today|year|clock|expir")
_DIMENSION_PATTERNS = {
    Dimension.environment: re.compile(r"environ|getenv|setenv|\benv\b"),
    Dimension.arguments: re.compile(r"argv|argparse|parse_args"),
    Dimension.streams: re.compile(r"stdin|stdout|stderr|isatty|\binput\b|capsys|capfd|terminal"),
    Dimension.logging: re.compile(r"\blog|caplog"),
    Dimension.host: re.compile(r"hostname|socket|platform|uname"),
    Dimension.clock: _TIME,
    Dimension.age: _TIME,
    Dimension.path: re.compile(r"__file__|getcwd|abspath|resolve\(|\bcwd\b"),
}
"""Words in a test that suggest that the test itself depends on the dimension."""


async def examine_neutral(patch: GreenPatch, runs: CheckRuns, *, far: bool) -> CheckOutcome:
    """Call the targets outside a test run; with `far` also far in the future and from an empty directory."""
    driver = _create_driver(patch, TreeView.open(patch.suite, runs, patch.base))
    if driver is None:
        note = f"tests of {patch.suite.runner or 'this command'} cannot be rerun neutrally"
        return CheckOutcome(CheckEvidence(check=CHECK, targets=len(set(patch.targets)), covered=0, notes=(note,)))
    rerun = _Rerun(patch, runs, driver)
    for surroundings in driver.variants[: 2 if far else 1]:
        await rerun.examine(surroundings)
    return rerun.build_outcome()


def _create_driver(patch: GreenPatch, view: TreeView) -> NeutralDriver | None:
    """Create the driver that calls the tests of this suite; None if there is none."""
    language = None if patch.suite.junit else find_runner_language(patch.suite.runner)
    return language.create_neutral_driver(patch, view) if language else None


class _Calibrated(NamedTuple):
    """Targets that behave on the original code in these surroundings as in a test run."""

    surroundings: Surroundings
    tests: list[str]


class _Rerun:
    """The neutral runs of one patch and their results so far."""

    def __init__(self, patch: GreenPatch, runs: CheckRuns, driver: NeutralDriver) -> None:
        self._green_patch, self._runs, self._driver = patch, runs, driver
        targets = sorted(set(patch.targets))
        chance = random.Random(patch.seed)  # noqa: S311 (which tests are looked at is no secret)
        self._targets = sorted(chance.sample(targets, MOST_TARGETS)) if len(targets) > MOST_TARGETS else targets
        self._before = {case.id: case for case in patch.before}
        self._covered_tests: set[str] = set()
        self._doubts: dict[str, PatchDoubt] = {}
        self._notes: dict[str, list[str]] = {}
        self._count = 0

    async def examine(self, surroundings: Surroundings) -> None:
        """Run the targets in these surroundings and investigate those that fail."""
        pending = [test for test in self._targets if test not in self._doubts]
        failed = await self._find_failing(pending, surroundings)
        for group in await self._group_by_surroundings(failed, surroundings):
            tests, times = group.tests, FAILURES
            if group.surroundings == surroundings:
                times -= 1
            else:
                dropped = max(surroundings.applied - group.surroundings.applied, key=list(Dimension).index)
                self._note(f"{{}} can be rerun neutrally only when {DIMENSION_CONDITIONS[dropped]}", tests)
            for _ in range(times):
                tests = await self._find_failing(tests, group.surroundings)
            await self._attribute_failures(tests, group.surroundings)

    def build_outcome(self) -> CheckOutcome:
        notes = [template.format(_format_names(tests)) for template, tests in self._notes.items()]
        count = len(set(self._green_patch.targets))
        if len(self._targets) < count:
            notes.append(f"{len(self._targets)} of {count} targets were drawn for the neutral rerun")
        evidence = CheckEvidence(
            check=CHECK,
            targets=count,
            covered=len(self._covered_tests | set(self._doubts)),
            runs=self._count,
            notes=tuple(clip(note, 300) for note in notes[:MOST_NOTES]),
        )
        return CheckOutcome(evidence, tuple(self._doubts.values()))

    async def _find_failing(self, tests: Sequence[str], surroundings: Surroundings) -> list[str]:
        """Return the tests that fail on the patched code. Record passing tests as covered and note uncallable ones."""
        results = await self._call(ACTIVITY, self._green_patch.patched, tests, surroundings)
        for test, result in results.items():
            if result.outcome == "passed":
                self._covered_tests.add(test)
            elif result.outcome == "unsupported" and test not in self._covered_tests:
                self._note(f"{{}} cannot be rerun neutrally: {_escape_braces(result.reason)}", [test])
        return [test for test in tests if results[test].outcome == "failed"]

    async def _group_by_surroundings(self, failed: Sequence[str], surroundings: Surroundings) -> list[_Calibrated]:
        """Group failed targets by surroundings in which the original code behaves as in a test run; note others."""
        narrowed = [
            surroundings.reset_dimension(dimension) for dimension in DROPPED_FIRST if dimension in surroundings.applied
        ]
        groups: list[_Calibrated] = []
        remaining = list(failed)
        for candidate in (surroundings, *narrowed[:MOST_DROPPED]):
            alike = await self._find_consistent(remaining, candidate) if remaining else []
            if alike:
                groups.append(_Calibrated(candidate, alike))
                remaining = [test for test in remaining if test not in alike]
        new = [test for test in remaining if test not in self._covered_tests]
        self._note("{} cannot be rerun neutrally here: the original code behaves differently there, too", new)
        return groups

    async def _find_consistent(self, tests: Sequence[str], surroundings: Surroundings) -> list[str]:
        """Return tests that fail on the original code as at the baseline, in files whose passing tests still pass."""
        passing = self._list_passing_tests(tests)
        results = await self._call(
            f"{ACTIVITY} without the patch", self._green_patch.base, [*tests, *passing], surroundings
        )
        find_file = self._driver.find_file
        broken_files = {find_file(test) for test in passing if results[test].outcome == "failed"}
        sound = [test for test in tests if test in self._before and find_file(test) not in broken_files]
        return [test for test in sound if self._driver.is_same_failure(self._before[test], results[test])]

    def _list_passing_tests(self, tests: Sequence[str]) -> list[str]:
        files = {self._driver.find_file(test) for test in tests}
        passing = (case.id for case in self._green_patch.before if case.outcome is Outcome.passed)
        return sorted(test for test in passing if self._driver.find_file(test) in files)[:MOST_PASSING]

    async def _attribute_failures(self, tests: Sequence[str], surroundings: Surroundings) -> None:
        """Reset one dimension after another to its value in a test run, until the tests pass."""
        remaining = list(tests)
        for dimension in Dimension:
            if remaining and dimension in surroundings.applied:
                changed = surroundings.reset_dimension(dimension)
                results = await self._call(ACTIVITY, self._green_patch.patched, remaining, changed)
                passed = [test for test in remaining if results[test].outcome == "passed"]
                related = [
                    test for test in passed if dimension is Dimension.streams and self._is_about(test, dimension)
                ]
                self._note(f"{{}} can be rerun neutrally only when {DIMENSION_CONDITIONS[dimension]}", related)
                self._doubts |= {test: self._create_doubt(test, dimension) for test in passed if test not in related}
                remaining = [test for test in remaining if test not in passed]
        for test in remaining:
            message = f"{_label(test)} fails outside a test run, for no single reason that was found"
            self._doubts[test] = PatchDoubt(message, refuses=False)

    def _create_doubt(self, test: str, dimension: Dimension) -> PatchDoubt:
        condition = self._driver.runner_condition if dimension is Dimension.runner else DIMENSION_CONDITIONS[dimension]
        refuses = dimension not in ALLOWED_DIMENSIONS and not self._is_about(test, dimension)
        return PatchDoubt(f"{_label(test)} passes only when {condition}", refuses=refuses)

    def _is_about(self, test: str, dimension: Dimension) -> bool:
        pattern = _DIMENSION_PATTERNS.get(dimension)
        return pattern is not None and bool(pattern.search(self._driver.read_text(test)))

    async def _call(
        self, activity: str, tree: Snapshot, tests: Sequence[str], surroundings: Surroundings
    ) -> dict[str, CallResult]:
        if not tests:
            return {}
        self._count += 1
        test_seconds = sum(self._before[test].seconds for test in tests if test in self._before)
        seconds = max(SHORTEST, TIMEOUT_FACTOR * test_seconds)
        completed = await self._runs.execute(activity, tree, self._driver.request(tests, seconds, surroundings))
        return self._driver.read(completed, tests)

    def _note(self, template: str, tests: Sequence[str]) -> None:
        if tests:
            noted = self._notes.setdefault(template, [])
            noted += [test for test in tests if test not in noted]


def _label(test: str) -> str:
    return (test if "::" in test else test.replace(".", "::")).rpartition("::")[2]


def _format_names(tests: Sequence[str]) -> str:
    suffix = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"{_label(tests[0])}{suffix}"


def _escape_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
