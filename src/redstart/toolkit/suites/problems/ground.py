"""Classifies failures that no edit of the code can fix: something the tests need is missing, refused or broken.

The decision depends on the exception, its message and where it was raised, never on words elsewhere in the text.
If a bug of the project could also be the reason, the failure counts as a bug: asking a model in vain costs less than
leaving a bug alone.
"""

from __future__ import annotations

from redstart.core.noun import FrozenValue, clip
from redstart.core.report import Case
from redstart.core.shell import ExitCause
from redstart.toolkit.languages.abilities import EnvironmentProblems
from redstart.toolkit.languages.registry import abilities, language_of_file, languages
from redstart.toolkit.suites.problems import remedies
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.problems.project import ProjectView, project_of

WHAT_LIMIT = 160


class EnvironmentProblem(FrozenValue):
    """Why no edit can make a test pass."""

    kind: str
    what: str
    remedy: str

    @property
    def words(self) -> str:
        return self.what if self.kind == "no_tests" else f"{self.kind.replace('_', ' ')}: {self.what}"


def ground(kind: str, what: str, remedy: str = "") -> EnvironmentProblem:
    """Build a problem, with the usual remedy for its kind if none is given."""
    return EnvironmentProblem(
        kind=kind, what=clip(" ".join(what.split()), WHAT_LIMIT), remedy=remedy or remedies.REMEDIES[kind]
    )


def classify(case: Case, project: ProjectView) -> EnvironmentProblem | None:
    """Find what the failing case lacks. None if it may be a bug of the project."""
    problems = _problems_of(case.id)
    return problems.of_case(case, project) if problems else None


def classify_run(
    problem: SuiteProblem, output: str, cause: ExitCause, project: ProjectView | None = None
) -> EnvironmentProblem | None:
    """Find what a run without results per test lacks. None if the reason is not a known one."""
    if cause in (ExitCause.timeout, ExitCause.cpu) or problem is SuiteProblem.timeout:
        return ground("timeout_of_sandbox", "the tests did not end in the time that the sandbox allows")
    if cause is ExitCause.memory:
        return ground("memory", "the tests need more memory than the sandbox allows")
    if cause is ExitCause.file_size:
        return ground("full_disk", "a file grew past the size that the sandbox allows")
    if cause is ExitCause.disk:
        return ground("full_disk", "the tests wrote more than the sandbox allows", remedies.allow("DISK"))
    if cause is ExitCause.processes:
        what = "the tests started more processes than the sandbox allows"
        return ground("processes", what, remedies.allow("PROCESSES"))
    if cause is ExitCause.output:
        return ground("output", "the tests printed more than the sandbox allows", remedies.LEAVE_OUT)
    if problem is SuiteProblem.no_tests:
        return ground("no_tests", "the test run collected no tests")
    known = project or project_of((), lambda _: None)
    asked = abilities(lambda language: language.environment_problems)
    said = (problems.of_output(problem, output, known) for problems in asked)
    raised = (problems.of_start(output, known) for problems in asked)
    return next((found for several in (said, raised) for found in several if found), None)


def _problems_of(id_: str) -> EnvironmentProblems | None:
    """Find the problems of the test file's language, or of a language with dotted IDs if the ID names no such file."""
    language = language_of_file(id_.partition("::")[0])
    if language and language.environment_problems:
        return language.environment_problems
    return next((item.environment_problems for item in languages() if item.module_suffix), None)
