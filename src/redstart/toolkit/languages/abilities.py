"""Groups of abilities that a language may have, each of which a module or an object can be."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from redstart.core.finding import Finding
from redstart.core.report import Case

if TYPE_CHECKING:
    from pathlib import Path

    from redstart.core.shell import Environment
    from redstart.toolkit.checks.source import Source
    from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch
    from redstart.toolkit.suites.detection.environment import Interpreter
    from redstart.toolkit.suites.problems.ground import EnvironmentProblem
    from redstart.toolkit.suites.problems.problem import SuiteProblem
    from redstart.toolkit.suites.problems.project import ProjectView


class GreenChecks(Protocol):
    """Checks of a patch whose targets pass, beside those that are made in every language."""

    async def examine_assertions(self, green: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
        """Whether the targets still execute their assertions; None where there is nothing to count."""
        ...

    async def examine_nearby(self, green: GreenPatch, runs: CheckRuns) -> CheckOutcome:
        """Whether a patch answers more than the tests' own questions."""
        ...


Tool = Callable[[Sequence["Source"]], list[Finding]]
"""What looks at files all together; it passes over those that it cannot judge."""
NamedTool = tuple[str, Tool]
"""With the name under which the user can leave it out or replace it."""


class CodeChecks(Protocol):
    """What finds faults in code by reading it. Raises `ConfigError` where a tool is not there or does not work."""

    def lint(self, files: Mapping[str, bytes]) -> list[Finding]:
        """Syntax errors and a few rules that mean trouble, by path and line."""
        ...

    def rules(self) -> Sequence[NamedTool]:
        """Tools of ours, for an audit."""
        ...

    def programs(self) -> Sequence[NamedTool]:
        """Tools that run as processes of their own, for an audit."""
        ...

    def only_confirms(self, finding: Finding) -> bool:
        """Whether a finding of one of these tools counts only where another tool shares it."""
        ...

    def blocked_calls(self, source: Source, names: Sequence[str]) -> list[Finding]:
        """The calls in a file that the user refuses, by their full names."""
        ...


class EnvironmentProblems(Protocol):
    """What tests lack that no edit of the code gives them; None where it may be a bug of the project."""

    def of_case(self, case: Case, project: ProjectView) -> EnvironmentProblem | None:
        """What a red test lacks."""
        ...

    def of_output(self, problem: SuiteProblem, output: str, project: ProjectView) -> EnvironmentProblem | None:
        """What a run without results lacks, by what the runner says of it."""
        ...

    def of_start(self, output: str, project: ProjectView) -> EnvironmentProblem | None:
        """The same by what was raised before any test ran."""
        ...


class ChangeReader(Protocol):
    """What a change of the code means, by its text."""

    def parses(self, text: bytes) -> bool:
        """Whether the text can be read at all."""
        ...

    def says_the_same(self, before: bytes, after: bytes) -> bool:
        """Whether only comments, blank lines or layout differ."""
        ...

    def added_names(self, lines: bytes) -> frozenset[str] | None:
        """The names that these lines define or import; None where they do anything else."""
        ...

    def tests_lost(self, before: bytes, after: bytes, ids: Collection[str]) -> str:
        """In a sentence, which of the collected tests `ids` differs; empty where all are as they were."""
        ...


class LentRunner(Protocol):
    """A runner of Redstart's own, for a project whose interpreter has none."""

    @property
    def name(self) -> str: ...

    def is_missing(self, runner: str, command: Sequence[str], interpreter: Interpreter) -> bool:
        """Whether the tests start this runner, by that command where one is given, and the interpreter lacks it."""
        ...

    def fits(self, interpreter: Interpreter) -> bool:
        """Whether it works with this interpreter."""
        ...

    def lend(self, environment: Environment, data: Path) -> Environment:
        """The same environment, with the runner kept below `data`."""
        ...
