"""Grade on a copy, with the hidden tests in place and every other test restored, by our own verdict."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from redstart.app.wire import AppContext
from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.noun import FrozenValue
from redstart.core.report import Case, Verdict
from redstart.evals.sealed import TaskFolder, changed
from redstart.toolkit.honesty.verdict.verdict import green_among, judge
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.suites.execute import SuiteRun, run_suite


class GradingBaseline(NamedTuple):
    """The test results that a task is graded against."""

    before: tuple[Case, ...]
    """Every test result on the given code, including the hidden tests."""
    targets: tuple[str, ...]
    """The tests that must pass."""
    trouble: str = ""
    """Why it cannot be used for grading; empty if it can."""


class Grade(FrozenValue):
    """Whether a change solves a task."""

    solved: bool
    verdict: Verdict = Verdict()
    restored: tuple[str, ...] = ()
    """Tests and test configuration that the change touched; grading restores them first."""
    trouble: str = ""
    """Why the change could not be graded; empty if it was."""


class Grader:
    """Grades by running tests in the sandbox. The baseline of each task is measured once, unless it is `known`."""

    def __init__(self, house: AppContext, known: Mapping[str, GradingBaseline] | None = None) -> None:
        """Create a grader. `known` is keyed by task digest. Raises `SandboxUnavailable` if `house` has no sandbox."""
        if house.adapters.sandbox is None:
            raise SandboxUnavailable("grading needs a sandbox")
        self._house, self._sandbox = house, house.adapters.sandbox
        self._standards: dict[str, GradingBaseline] = dict(known or {})

    async def run(self, site: TaskFolder, snapshot: Snapshot) -> SuiteRun:
        """Run all tests of the task once, on a fresh copy. Raises what the sandbox raises."""
        unsigned = partial(sign, is_source=lambda _: False)
        return await run_suite(self._sandbox, self._house.adapters.blobs, site.spec, snapshot, sign=unsigned)

    def with_hidden(self, site: TaskFolder, snapshot: Snapshot) -> Snapshot:
        return changed(self._house.trees, snapshot, site.task.hidden, f"{site.task.id}: its hidden tests")

    def with_fix(self, site: TaskFolder, snapshot: Snapshot) -> Snapshot:
        return changed(self._house.trees, snapshot, site.task.fix, f"{site.task.id}: its fix")

    async def standard(self, site: TaskFolder) -> GradingBaseline:
        """Return the baseline, measured with the given code and, if known, the true fix."""
        known = self._standards.get(site.task.digest)
        if known is None:
            known = self._standards[site.task.digest] = await self._find_standard(site)
        return known

    async def _find_standard(self, site: TaskFolder) -> GradingBaseline:
        bare = self.with_hidden(site, site.spec.base)
        first = await self.run(site, bare)
        red = [case.id for case in first.cases if case.red]
        if not first.trouble and not red and _is_open(site):
            return GradingBaseline(first.cases, ())
        if first.trouble or not red:
            return GradingBaseline(first.cases, (), first.report.fault or "no test fails")
        wanted = set(site.task.red) or set(red)
        if site.task.fix:
            done = await self.run(site, self.with_fix(site, bare))
            wanted = green_among(wanted, done.cases)
        trouble = "" if wanted else "no failing test passes with the true fix"
        return GradingBaseline(first.cases, tuple(sorted(wanted)), trouble)

    async def grade(self, site: TaskFolder, made: Snapshot) -> Grade:
        """Grade whether the snapshot that an agent made solves the task. Raises what the sandbox raises."""
        standard = await self.standard(site)
        if standard.trouble:
            return Grade(solved=False, trouble=standard.trouble)
        trees, base = self._house.trees, site.spec.base
        touched = [change.path for change in trees.changes(base, made) if protected(change.path)]
        clean = trees.write(made, {path: trees.read(base, path) for path in touched}) if touched else made
        final = self.with_hidden(site, clean)
        first = await self.run(site, final)
        judged = partial(
            judge,
            standard.before,
            first.cases,
            standard.targets,
            unexplained=first.unexplained or first.report.fault,
        )
        verdict = judged()
        if standard.targets and verdict.honest_green:
            # Run once more, since a green result may be luck. Any other result stays unsolved whatever a rerun shows.
            verdict = judged(repeats=[(await self.run(site, final)).cases])
        solved = verdict.honest_green if standard.targets else _is_no_worse(verdict)
        return Grade(solved=solved, verdict=verdict, restored=tuple(touched[:20]))


def _is_open(site: TaskFolder) -> bool:
    """Return whether only the goal defines the task. Then grading can only detect what got worse."""
    return not (site.task.shows_red or site.task.hidden or site.task.fix)


def _is_no_worse(verdict: Verdict) -> bool:
    return not (verdict.newly_red or verdict.missing or verdict.newly_skipped or verdict.unexplained)
