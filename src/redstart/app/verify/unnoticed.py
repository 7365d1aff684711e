"""Find what no test notices: changed lines that no test runs, and small changes of them that no test fails for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.app.verify.matrix import VerifiedChange
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.report import Case, Mutants, Outcome
from redstart.core.verification import FileRole, UntestedLines
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.honesty.mutant_sample import ProgramFile, find_new_lines, sample_mutants
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.honesty.verdict.hunks import get_change_reader
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.suites.execute import load_environment
from redstart.toolkit.suites.spectrum import build_line_request, read_spectrum

SHORTEST, TIMEOUT_FACTOR = 20.0, 10.0
"""Minimum time limit in seconds for the tests of a changed file, and its factor over the time of these tests."""


class Unnoticed(NamedTuple):
    untested: tuple[UntestedLines, ...] = ()
    mutants: Mutants | None = None
    notes: tuple[str, ...] = ()
    """What could not be checked."""


class UnnoticedSearch(NamedTuple):
    """What to look for."""

    most_mutants: int
    seed: str
    lists_untested: bool
    """Whether to find the changed lines that no test runs. Without it, nothing runs."""


async def find_unnoticed(
    runs: SuiteRuns, change: VerifiedChange, nearby: Sequence[Case], options: UnnoticedSearch
) -> Unnoticed:
    """Find what the passing ones of the tests do not notice that import a changed file.

    Without such tests, nothing runs.
    """
    passing = [case for case in nearby if case.outcome is Outcome.passed]
    search = _Search(runs, change, passing)
    if not (passing and options.lists_untested and search.files):
        return Unnoticed()
    untested, notes = await search.find_untested_lines()
    return Unnoticed(tuple(untested), await search.try_mutants(options.most_mutants, options.seed), tuple(notes))


class _Search:
    def __init__(self, runs: SuiteRuns, change: VerifiedChange, passing: Sequence[Case]) -> None:
        self._runs, self._change, self._ids = runs, change, [case.id for case in passing]
        seconds = TIMEOUT_FACTOR * sum(case.seconds for case in passing)
        sandbox = change.new_spec.sandbox
        limits = sandbox.model_copy(update={"wall": min(max(SHORTEST, seconds), sandbox.wall)})
        self._spec = change.new_spec.model_copy(update={"sandbox": limits})
        self.files = {
            path: ProgramFile(runs.read(change.base, path) or b"", data)
            for path in change.list_paths(FileRole.source)
            if (data := runs.read(change.head, path)) is not None
        }

    async def find_untested_lines(self) -> tuple[list[UntestedLines], list[str]]:
        """Find changed lines of functions that none of the tests runs. Also return why that is not known."""
        suite, head = self._change.new_spec.suite, self._change.head
        request = build_line_request(suite, load_environment(self._runs.blobs, self._spec), self._ids)
        if request is None:
            return [], []
        spectrum = read_spectrum(await self._runs.execute("changed lines that tests run", head, request))
        if spectrum is None or spectrum.green < len(self._ids):
            return [], ["not known which changed lines no test runs: tracing takes too long or changes results"]
        ran = {path: {line for line, _, _ in lines} for path, lines in spectrum.files.items()}
        found = (
            UntestedLines(path=path, lines=tuple(lines))
            for path, file in self.files.items()
            if (lines := sorted(_list_new_function_lines(path, file) - ran.get(suite.to_runner_path(path), set())))
        )
        return list(found), []

    async def try_mutants(self, most: int, seed: str) -> Mutants | None:
        """Try small changes of the changed lines. None if there are none to try."""
        mutants = sample_mutants(self.files, seed, most)
        detected = await run_together(
            self._is_detected(mutant, f"mutant {number} of {len(mutants)}") for number, mutant in enumerate(mutants, 1)
        )
        survivors = [mutant.words for mutant, is_detected in zip(mutants, detected, strict=True) if not is_detected]
        killed = len(mutants) - len(survivors)
        return Mutants(sampled=len(mutants), killed=killed, survivors=tuple(survivors[:10])) if mutants else None

    async def _is_detected(self, mutant: Mutant, activity: str) -> bool:
        mutated = self._runs.write(self._change.head, {mutant.path: mutant.apply_to(self.files[mutant.path].after)})
        suite_run = await self._runs.run_suite(activity, mutated, self._spec, self._ids, tests=len(self._ids))
        return find_passing_targets(self._ids, suite_run.cases) != set(self._ids)


def _list_new_function_lines(path: str, file: ProgramFile) -> frozenset[int]:
    reader = get_change_reader(path)
    return find_new_lines(file) & reader.list_function_lines(file.after) if reader else frozenset()
