"""Classify failures that no edit of the code can fix: something the tests need is missing, refused or broken.

The decision depends on the exception, its message and where it was raised, never on words elsewhere in the text. If a
bug of the project could also be the reason, the failure counts as a bug: asking a model in vain costs less than missing
a bug.
"""

from __future__ import annotations

from redstart.core.frozen import FrozenValue, clip
from redstart.core.report import Case
from redstart.core.shell import ExitCause
from redstart.toolkit.languages.abilities import EnvironmentProblems
from redstart.toolkit.languages.registry import find_file_language, list_abilities, list_languages
from redstart.toolkit.suites.problems import remedies
from redstart.toolkit.suites.problems.project import ProjectView, create_project_view
from redstart.toolkit.suites.problems.run_problems import SuiteProblem

MAX_PROBLEM_CHARACTERS = 160


class EnvironmentProblem(FrozenValue):
    """Why no edit can make a test pass."""

    kind: str
    what: str
    remedy: str

    @property
    def words(self) -> str:
        return self.what if self.kind == "no_tests" else f"{self.kind.replace('_', ' ')}: {self.what}"


def create_problem(kind: str, description: str, remedy: str = "") -> EnvironmentProblem:
    """Build a problem, with the usual remedy for its kind if none is given."""
    return EnvironmentProblem(
        kind=kind,
        what=clip(" ".join(description.split()), MAX_PROBLEM_CHARACTERS),
        remedy=remedy or remedies.REMEDIES[kind],
    )


def classify(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    """Find what the failing case lacks. None if it may be a bug of the project."""
    problems = _find_detector(case.id)
    return problems.classify_case(case, project) if problems else None


def classify_run(
    problem: SuiteProblem, output: str, cause: ExitCause, project: ProjectView | None = None
) -> EnvironmentProblem | None:
    """Find what a run without results per test lacks. None if the reason is not a known one."""
    if cause in (ExitCause.timeout, ExitCause.cpu) or problem is SuiteProblem.timeout:
        return create_problem("timeout_of_sandbox", "the tests did not end in the time that the sandbox allows")
    if cause is ExitCause.memory:
        return create_problem("memory", "the tests need more memory than the sandbox allows")
    if cause is ExitCause.file_size:
        return create_problem("full_disk", "a file grew past the size that the sandbox allows")
    if cause is ExitCause.disk:
        return create_problem("full_disk", "the tests wrote more than the sandbox allows", remedies.allow("DISK"))
    if cause is ExitCause.processes:
        description = "the tests started more processes than the sandbox allows"
        return create_problem("processes", description, remedies.allow("PROCESSES"))
    if cause is ExitCause.output:
        return create_problem("output", "the tests printed more than the sandbox allows", remedies.LEAVE_OUT)
    if problem is SuiteProblem.no_tests:
        return create_problem("no_tests", "the test run collected no tests")
    view = project or create_project_view((), lambda _: None)
    detectors = list_abilities(lambda language: language.environment_problems)
    from_output = (problems.classify_output(problem, output, view) for problems in detectors)
    from_start = (problems.classify_startup(output, view) for problems in detectors)
    return next((match for group in (from_output, from_start) for match in group if match), None)


def _find_detector(id_: str) -> EnvironmentProblems | None:
    """Find the problems of the test file's language, or of a language with dotted IDs if the ID names no such file."""
    language = find_file_language(id_.partition("::")[0])
    if language and language.environment_problems:
        return language.environment_problems
    return next((item.environment_problems for item in list_languages() if item.module_suffix), None)
