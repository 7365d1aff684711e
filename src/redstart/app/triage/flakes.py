"""Measure how often failing tests fail when they run again, and what their result depends on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.change import Snapshot
from redstart.core.report import Case
from redstart.core.run import Level, RunSpec
from redstart.core.shell import PINNED, Variation
from redstart.core.triage import FlakeCause
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.honesty.verdict.flake_conditions import HASH_SEED, find_conditions
from redstart.toolkit.honesty.verdict.levels import MEASURES
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.suites.execute import load_environment
from redstart.toolkit.suites.reading.exceptions import list_exceptions

_RERUNS = (("", PINNED), *MEASURES[Level.standard].before)
_CAUSES = {
    HASH_SEED: FlakeCause.hash_seed,
    "random seed": FlakeCause.seed,
    "time zone": FlakeCause.time,
    "order": FlakeCause.order,
}
_NETWORK = frozenset(
    (
        *("ConnectionError", "ConnectionRefusedError", "ConnectionResetError", "ConnectionAbortedError"),
        *("BrokenPipeError", "ConnectError", "ConnectTimeout", "ReadTimeout", "URLError", "MaxRetryError", "gaierror"),
    )
)
"""Exceptions of a connection."""


class RepeatedTest(NamedTuple):
    """The runs of one test on the same code."""

    runs: int
    failures: int
    cause: FlakeCause | None = None
    """What a flaky test depends on; None if that is unknown."""


async def repeat_tests(
    runs: SuiteRuns, head: Snapshot, spec: RunSpec, first: Mapping[str, Case], selection: Sequence[str]
) -> dict[str, RepeatedTest]:
    """Run the tests again, without the others and with one varied condition each.

    `first` has the result of each in the first run, which ran `selection`; empty for the whole suite.
    """
    return await _TestRepeater(runs, head, spec, first, selection).repeat() if first else {}


class _TestRepeater:
    def __init__(
        self, runs: SuiteRuns, head: Snapshot, spec: RunSpec, first: Mapping[str, Case], selection: Sequence[str]
    ) -> None:
        self._runs, self._head, self._spec = runs, head, spec
        self._first, self._selection = first, selection
        self._failures = {id_: [case.is_red] for id_, case in first.items()}
        self._causes: dict[str, FlakeCause] = {}

    async def repeat(self) -> dict[str, RepeatedTest]:
        reruns = await run_together(
            self._rerun(f"rerun {number} of {len(_RERUNS)}", list(self._first), variation)
            for number, (_, variation) in enumerate(_RERUNS, 1)
        )
        passed_in: dict[str, tuple[str, Variation]] = {}
        for passing, condition in zip(reruns, _RERUNS, strict=True):
            passed_in = dict.fromkeys(passing, condition) | passed_in
        await self._find_causes({id_: rerun for id_, rerun in passed_in.items() if self._first[id_].is_red})
        await self._rerun_without_ignored_files()
        return {
            id_: RepeatedTest(len(failures), sum(failures), self._causes.get(id_))
            for id_, failures in self._failures.items()
        }

    async def _rerun(
        self,
        activity: str,
        ids: Sequence[str],
        variation: Variation = PINNED,
        *,
        spec: RunSpec | None = None,
        selection: Sequence[str] | None = None,
    ) -> set[str]:
        """Run the tests again, record how they end, and return those that pass. `selection` is what runs besides."""
        names = ids if selection is None else selection
        suite_run = await self._runs.run_suite(
            activity, self._head, spec or self._spec, names, variation=variation, tests=len(names)
        )
        passing = find_passing_targets(ids, suite_run.cases)
        if not suite_run.problem:
            for id_ in ids:
                self._failures[id_].append(id_ not in passing)
        return passing

    async def _find_causes(self, flaky: Mapping[str, tuple[str, Variation]]) -> None:
        """Find what the tests depend on that fail in the first run and pass in another one."""
        if not flaky:
            return
        rerun = partial(self._rerun, "what the flaky tests depend on")
        conditions = await find_conditions(flaky, rerun)
        causes = {id_: _CAUSES.get(name, FlakeCause.chance) for id_, name in conditions.items()}
        if alone := [id_ for id_ in flaky if sum(self._failures[id_]) == 1]:
            passing = await self._rerun("the flaky tests among the others", alone, selection=self._selection)
            causes |= dict.fromkeys(set(alone) - passing, FlakeCause.order)
        self._causes = {id_: _name_special_cause(self._first[id_], cause) for id_, cause in causes.items()}

    async def _rerun_without_ignored_files(self) -> None:
        """Run what fails each time without the files that git ignores, which an earlier run may have left behind."""
        environment = load_environment(self._runs.blobs, self._spec)
        steady = [id_ for id_, failures in self._failures.items() if all(failures)]
        if not environment.copies or not steady:
            return
        bare = self._runs.blobs.put(environment.model_copy(update={"copies": ()}).model_dump_json().encode())
        suite = self._spec.suite.model_copy(update={"environment": bare})
        spec = self._spec.model_copy(update={"suite": suite})
        passing = await self._rerun("without the files that git ignores", steady, spec=spec)
        self._causes |= dict.fromkeys(passing, FlakeCause.leftover_file)


def _name_special_cause(case: Case, cause: FlakeCause) -> FlakeCause:
    """Name the cause after the exception, if that tells more."""
    types = {exception.type for exception in list_exceptions(case)}
    if cause is FlakeCause.order and "FileExistsError" in types:
        return FlakeCause.leftover_file
    return FlakeCause.network if cause is FlakeCause.chance and types & _NETWORK else cause
