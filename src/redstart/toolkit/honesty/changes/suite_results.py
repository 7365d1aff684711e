"""The results of one run of a suite, by test ID."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redstart.core.report import Case, Outcome
from redstart.toolkit.honesty.verdict.verdict import list_containers


class SuiteResults:
    """Finds the result of a test. A test in a file that could not be collected has the result of that file."""

    def __init__(self, cases: Iterable[Case]) -> None:
        self.cases = {case.id: case for case in cases}

    def find(self, id_: str) -> Case | None:
        """Return the result of the test; None if it did not run."""
        if id_ in self.cases:
            return self.cases[id_]
        containers = (self.cases.get(container) for container in list_containers(id_))
        return next((case for case in containers if case is not None and case.is_red), None)

    def is_red(self, id_: str) -> bool:
        case = self.find(id_)
        return case is not None and case.is_red

    def is_passed(self, id_: str) -> bool:
        case = self.find(id_)
        return case is not None and case.outcome is Outcome.passed

    def with_run(self, ids: Sequence[str], cases: Iterable[Case]) -> SuiteResults:
        """Return these results with those of a later run of the tests `ids` in place of their own."""
        rerun = frozenset(ids)
        return SuiteResults([*(case for case in self.cases.values() if case.id not in rerun), *cases])


class ResultMatrix(NamedTuple):
    """The results of the tests of both sides on the code of both sides."""

    old: SuiteResults
    """The old tests on the old code."""
    new: SuiteResults
    """The new tests on the new code."""
    without: SuiteResults
    """The new tests on the old code."""
    former: SuiteResults
    """The old tests on the new code."""
