"""Groups of abilities that a language may have. A module or an object can implement each group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from redstart.core.finding import Finding
from redstart.core.report import Case

if TYPE_CHECKING:
    from pathlib import Path

    from redstart.core.change import Snapshot
    from redstart.core.shell import Environment
    from redstart.toolkit.checks.source import Source
    from redstart.toolkit.honesty.examination import (
        BehaviorDifference,
        CheckOutcome,
        CheckRuns,
        CommandRuns,
        GreenPatch,
    )
    from redstart.toolkit.suites.detection.environment import Interpreter
    from redstart.toolkit.suites.problems.environment import EnvironmentProblem
    from redstart.toolkit.suites.problems.project import ProjectView
    from redstart.toolkit.suites.problems.run_problems import SuiteProblem


class GreenChecks(Protocol):
    """Checks of a patch whose targets pass, in addition to the checks that run for every language."""

    async def examine_assertions(self, patch: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
        """Check that the targets still execute their assertions; return None if there is nothing to count."""
        ...

    async def examine_nearby(self, patch: GreenPatch, runs: CheckRuns) -> CheckOutcome:
        """Check that a patch handles more inputs than those that the tests use."""
        ...

    async def find_difference(
        self, patch: GreenPatch, trees: Sequence[Snapshot], runs: CommandRuns
    ) -> BehaviorDifference | None:
        """Find an input for which these trees, on all of which the targets pass, give different results."""
        ...


Tool = Callable[[Sequence["Source"]], list[Finding]]
"""A function that examines all files together and skips those that it cannot judge."""
NamedTool = tuple[str, Tool]
"""A tool with the name by which the user can disable or replace it."""


class CodeChecks(Protocol):
    """Static checks of code. Raises `ConfigError` if a tool is missing or does not work."""

    def lint(self, files: Mapping[str, bytes]) -> list[Finding]:
        """Find syntax errors and violations of a few important rules, by path and line."""
        ...

    def list_rules(self) -> Sequence[NamedTool]:
        """Return the built-in tools for an audit."""
        ...

    def list_programs(self) -> Sequence[NamedTool]:
        """Return the tools for an audit that run as separate processes."""
        ...

    def needs_confirmation(self, finding: Finding) -> bool:
        """Return whether a finding of one of these tools counts only if another tool reports it too."""
        ...

    def find_blocked_calls(self, source: Source, names: Sequence[str]) -> list[Finding]:
        """Find calls in a file that the user forbids, by their full names."""
        ...


class EnvironmentProblems(Protocol):
    """Find what tests lack that no edit of the code can provide; None if the cause may be a bug in the project."""

    def classify_case(self, case: Case, project: ProjectView) -> EnvironmentProblem | None:
        """Find what a failing test lacks."""
        ...

    def classify_output(self, problem: SuiteProblem, output: str, project: ProjectView) -> EnvironmentProblem | None:
        """Find what a run without results lacks, from the runner's output."""
        ...

    def classify_startup(self, output: str, project: ProjectView) -> EnvironmentProblem | None:
        """Find what a run lacks, from the error that was raised before any test ran."""
        ...


class ChangeReader(Protocol):
    """Interprets a change of the code from its text."""

    def can_parse(self, text: bytes) -> bool:
        """Return whether the text can be parsed."""
        ...

    def has_same_meaning(self, before: bytes, after: bytes) -> bool:
        """Return whether only comments, blank lines or layout differ."""
        ...

    def list_added_names(self, lines: bytes) -> frozenset[str] | None:
        """List the names that these lines define or import; None if the lines do anything else."""
        ...

    def list_function_lines(self, text: bytes) -> frozenset[int]:
        """List the lines that run when functions are called; empty if the text cannot be parsed."""
        ...

    def describe_lost_tests(self, before: bytes, after: bytes, ids: Collection[str]) -> str:
        """Return a sentence that names which of the collected tests `ids` differs; empty if none differs."""
        ...


class LentRunner(Protocol):
    """A runner that Redstart lends to a project whose interpreter has none."""

    @property
    def name(self) -> str: ...

    def is_missing(self, runner: str, command: Sequence[str], interpreter: Interpreter) -> bool:
        """Return whether the tests use this runner (started by `command` if given) and the interpreter lacks it."""
        ...

    def is_compatible(self, interpreter: Interpreter) -> bool:
        """Return whether it works with this interpreter."""
        ...

    def lend(self, environment: Environment, data: Path) -> Environment:
        """Return the environment with the runner added; the runner is stored below `data`."""
        ...
