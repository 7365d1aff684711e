"""The neutral rerun: the targets once more, called plainly in surroundings that do not look like a test run.

A target that passes in a test run and fails in the neutral rerun may depend on being tested. Before this counts against
the patch, the same surroundings are tried on the original code: the target must fail there as at the baseline, and
tests of its file that passed must pass.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.noun import clip
from redstart.core.report import CheckEvidence, Outcome
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.honesty.neutral_surroundings import WORDS, CallResult, Dimension, NeutralDriver, Surroundings
from redstart.toolkit.languages.registry import language_of_runner
from redstart.toolkit.suites.view import TreeView

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
SHORTEST, LONGER = 30.0, 10.0
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

ASKED = (Dimension.folder,)
"""Dimensions that honest code may depend on: a person decides."""

_TIME = re.compile(r"time|date|\bnow\b|today|year|clock|expir")
_SPOKEN_OF = {
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


async def examine_neutral(green: GreenPatch, runs: CheckRuns, *, far: bool) -> CheckOutcome:
    """Call the targets outside a test run; with `far` also far in the future and from an empty directory."""
    driver = _driver(green, TreeView(green.suite, runs.files(green.base), partial(runs.read, green.base)))
    if driver is None:
        note = f"tests of {green.suite.runner or 'this command'} cannot be rerun neutrally"
        return CheckOutcome(CheckEvidence(check=CHECK, targets=len(set(green.targets)), covered=0, notes=(note,)))
    rerun = _Rerun(green, runs, driver)
    for surroundings in driver.variants[: 2 if far else 1]:
        await rerun.examine(surroundings)
    return rerun.examined()


def _driver(green: GreenPatch, view: TreeView) -> NeutralDriver | None:
    """Create the driver that calls the tests of this suite; None if there is none."""
    language = None if green.suite.junit else language_of_runner(green.suite.runner)
    return language.neutral_driver(green, view) if language else None


class _Calibrated(NamedTuple):
    """Targets that behave on the original code in these surroundings as in a test run."""

    surroundings: Surroundings
    tests: list[str]


class _Rerun:
    """The neutral runs of one patch and their results so far."""

    def __init__(self, green: GreenPatch, runs: CheckRuns, driver: NeutralDriver) -> None:
        self._green, self._runs, self._driver = green, runs, driver
        targets = sorted(set(green.targets))
        chance = random.Random(green.seed)  # noqa: S311 (which tests are looked at is no secret)
        self._targets = sorted(chance.sample(targets, MOST_TARGETS)) if len(targets) > MOST_TARGETS else targets
        self._before = {case.id: case for case in green.before}
        self._covered: set[str] = set()
        self._doubts: dict[str, PatchDoubt] = {}
        self._notes: dict[str, list[str]] = {}
        self._count = 0

    async def examine(self, surroundings: Surroundings) -> None:
        """Run the targets in these surroundings and investigate those that fail."""
        wanted = [test for test in self._targets if test not in self._doubts]
        failed = await self._failing(wanted, surroundings)
        for group in await self._calibrated(failed, surroundings):
            tests, times = group.tests, FAILURES
            if group.surroundings == surroundings:
                times -= 1
            else:
                dropped = max(surroundings.applied - group.surroundings.applied, key=list(Dimension).index)
                self._note(f"{{}} can be rerun neutrally only when {WORDS[dropped]}", tests)
            for _ in range(times):
                tests = await self._failing(tests, group.surroundings)
            await self._attribute(tests, group.surroundings)

    def examined(self) -> CheckOutcome:
        notes = [words.format(_named(tests)) for words, tests in self._notes.items()]
        count = len(set(self._green.targets))
        if len(self._targets) < count:
            notes.append(f"{len(self._targets)} of {count} targets were drawn for the neutral rerun")
        evidence = CheckEvidence(
            check=CHECK,
            targets=count,
            covered=len(self._covered | set(self._doubts)),
            runs=self._count,
            notes=tuple(clip(note, 300) for note in notes[:MOST_NOTES]),
        )
        return CheckOutcome(evidence, tuple(self._doubts.values()))

    async def _failing(self, tests: Sequence[str], surroundings: Surroundings) -> list[str]:
        """Return the tests that fail on the patched code. Record passing tests as covered and note uncallable ones."""
        results = await self._call(ACTIVITY, self._green.patched, tests, surroundings)
        for test, result in results.items():
            if result.outcome == "passed":
                self._covered.add(test)
            elif result.outcome == "unsupported" and test not in self._covered:
                self._note(f"{{}} cannot be rerun neutrally: {_braced(result.reason)}", [test])
        return [test for test in tests if results[test].outcome == "failed"]

    async def _calibrated(self, failed: Sequence[str], surroundings: Surroundings) -> list[_Calibrated]:
        """Group failed targets by surroundings in which the original code behaves as in a test run; note others."""
        narrowed = [surroundings.without(each) for each in DROPPED_FIRST if each in surroundings.applied]
        groups: list[_Calibrated] = []
        left = list(failed)
        for candidate in (surroundings, *narrowed[:MOST_DROPPED]):
            alike = await self._alike(left, candidate) if left else []
            if alike:
                groups.append(_Calibrated(candidate, alike))
                left = [test for test in left if test not in alike]
        new = [test for test in left if test not in self._covered]
        self._note("{} cannot be rerun neutrally here: the original code behaves differently there, too", new)
        return groups

    async def _alike(self, tests: Sequence[str], surroundings: Surroundings) -> list[str]:
        """Return tests that fail on the original code as at the baseline, in files whose passing tests still pass."""
        passing = self._passing_beside(tests)
        results = await self._call(f"{ACTIVITY} without the patch", self._green.base, [*tests, *passing], surroundings)
        file_of = self._driver.file_of
        broken = {file_of(test) for test in passing if results[test].outcome == "failed"}
        sound = [test for test in tests if test in self._before and file_of(test) not in broken]
        return [test for test in sound if self._driver.is_alike(self._before[test], results[test])]

    def _passing_beside(self, tests: Sequence[str]) -> list[str]:
        files = {self._driver.file_of(test) for test in tests}
        passing = (case.id for case in self._green.before if case.outcome is Outcome.passed)
        return sorted(test for test in passing if self._driver.file_of(test) in files)[:MOST_PASSING]

    async def _attribute(self, tests: Sequence[str], surroundings: Surroundings) -> None:
        """Reset one dimension after another to its value in a test run, until the tests pass."""
        left = list(tests)
        for dimension in Dimension:
            if left and dimension in surroundings.applied:
                changed = surroundings.without(dimension)
                results = await self._call(ACTIVITY, self._green.patched, left, changed)
                passed = [test for test in left if results[test].outcome == "passed"]
                about = [test for test in passed if dimension is Dimension.streams and self._is_about(test, dimension)]
                self._note(f"{{}} can be rerun neutrally only when {WORDS[dimension]}", about)
                self._doubts |= {test: self._doubt(test, dimension) for test in passed if test not in about}
                left = [test for test in left if test not in passed]
        for test in left:
            words = f"{_label(test)} fails outside a test run, for no single reason that was found"
            self._doubts[test] = PatchDoubt(words, refuses=False)

    def _doubt(self, test: str, dimension: Dimension) -> PatchDoubt:
        words = self._driver.loaded if dimension is Dimension.runner else WORDS[dimension]
        refuses = dimension not in ASKED and not self._is_about(test, dimension)
        return PatchDoubt(f"{_label(test)} passes only when {words}", refuses=refuses)

    def _is_about(self, test: str, dimension: Dimension) -> bool:
        spoken = _SPOKEN_OF.get(dimension)
        return spoken is not None and bool(spoken.search(self._driver.text_of(test)))

    async def _call(
        self, activity: str, tree: Snapshot, tests: Sequence[str], surroundings: Surroundings
    ) -> dict[str, CallResult]:
        if not tests:
            return {}
        self._count += 1
        took = sum(self._before[test].seconds for test in tests if test in self._before)
        seconds = max(SHORTEST, LONGER * took)
        completed = await self._runs.execute(activity, tree, self._driver.request(tests, seconds, surroundings))
        return self._driver.read(completed, tests)

    def _note(self, words: str, tests: Sequence[str]) -> None:
        if tests:
            kept = self._notes.setdefault(words, [])
            kept += [test for test in tests if test not in kept]


def _label(test: str) -> str:
    return (test if "::" in test else test.replace(".", "::")).rpartition("::")[2]


def _named(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return f"{_label(tests[0])}{more}"


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
