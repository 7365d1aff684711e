"""Find failing tests that fail for a reason outside of the code, so that no edit is asked for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redstart.core.report import Case
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.suites.problems.environment import EnvironmentProblem
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.problems.submodules import find_missing_submodule


def find_foreign_failures(
    cases: Iterable[Case], project: ProjectView, submodules: Sequence[str], mount: str, folder: str
) -> dict[str, EnvironmentProblem]:
    """Find the failing tests that need a submodule which is not checked out, or another version of a package."""
    found = (
        (case.id, find_missing_submodule(case, submodules, mount, folder) or _find_foreign_call(case, project))
        for case in cases
        if case.is_red
    )
    return {id_: problem for id_, problem in found if problem is not None}


def _find_foreign_call(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    language = find_file_language(case.id.partition("::")[0])
    return language.find_foreign_call(case, project) if language else None
