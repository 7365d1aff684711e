"""The interface of a language for the rest of the toolkit.

A language is a value: a class with a few plain facts, and a property for each group of abilities. If a group is
absent, Redstart cannot do this in the language, and callers tell the user so. Properties import what they need when
they are accessed, so that a parser or a driver costs nothing in a project that does not use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from redstart.core.report import Case
from redstart.core.shell import Completed, Environment, Variation
from redstart.core.suite import Suite

if TYPE_CHECKING:
    from redstart.toolkit.checks.source import Source
    from redstart.toolkit.honesty.controls.alteration import Alterer
    from redstart.toolkit.honesty.examination import GreenPatch
    from redstart.toolkit.honesty.mutation import Mutant
    from redstart.toolkit.honesty.neutral_surroundings import NeutralDriver
    from redstart.toolkit.honesty.tripwires.protocol import Change, Tripwires
    from redstart.toolkit.installs.manager import PackageManager
    from redstart.toolkit.languages.abilities import (
        ChangeReader,
        CodeChecks,
        EnvironmentProblems,
        GreenChecks,
        LentRunner,
    )
    from redstart.toolkit.languages.new_program import NewPrograms
    from redstart.toolkit.model_tools.probes import Snippets
    from redstart.toolkit.model_tools.symbols import Symbol
    from redstart.toolkit.patching.edited_code import EditedCode
    from redstart.toolkit.patching.policy import Protection
    from redstart.toolkit.retrieval.code_reader import CodeReader
    from redstart.toolkit.retrieval.sources import Sources
    from redstart.toolkit.suites.problems.environment import EnvironmentProblem
    from redstart.toolkit.suites.problems.project import ProjectView
    from redstart.toolkit.suites.problems.run_problems import SuiteProblem
    from redstart.toolkit.suites.request import SuiteRequest
    from redstart.toolkit.suites.suite_directory import TreeView

Read = Callable[[str], bytes | None]
"""Returns the bytes of a file of the tree; None if the file does not exist."""


STARTERS = ("make", "sh", "bash")
"""Programs that start the test runner."""


class SuitePlace(NamedTuple):
    """The location of a test suite and its runner."""

    folder: str
    """The path relative to the tree's root; empty for the root."""
    runner: str
    command: tuple[str, ...] = ()
    """How the project itself starts the runner, if that matters."""


class ReportNames(NamedTuple):
    """The names that the report of an unknown runner may use for the tests of a file."""

    names: frozenset[str] = frozenset()
    """Names of modules, classes and functions."""
    endings: tuple[str, ...] = ()
    """Titles of tests; a report may show only the last title of a test."""


class ReadCases(NamedTuple):
    """The contents of the reports of a run."""

    cases: list[Case] | None
    """None if no report can be read."""
    has_report: bool


class RunFault(NamedTuple):
    """The reason for missing results per test: a sentence for the user and the kind of problem."""

    sentence: str
    problem: SuiteProblem


class SuiteRunner:
    """Starts the runners of a language and interprets their runs."""

    def build_request(
        self,
        suite: Suite,
        environment: Environment,
        *,
        ids: Sequence[str],
        sentinel: Sequence[str],
        variation: Variation,
        test_cpu: int,
    ) -> SuiteRequest:
        """Build the request that runs the whole suite, or at least its tests `ids`."""
        raise NotImplementedError

    def read(self, suite: Suite, completed: Completed) -> ReadCases:
        """Read the results per test from a completed run."""
        raise NotImplementedError

    def build_retry_request(
        self, suite: Suite, environment: Environment, completed: Completed, variation: Variation
    ) -> SuiteRequest | None:
        """Build a request to replace a run that Redstart kept from reaching its tests; None for any other run."""
        return None

    def can_select_tests(self, suite: Suite) -> bool:
        """Return whether some tests can run without the others."""
        return True

    def has_runner_exit_code(self, suite: Suite) -> bool:
        """Return whether the exit code is pytest's and not that of a command around the runner."""
        return False

    def is_exit_code_explained(self, suite: Suite, cases: Sequence[Case], completed: Completed) -> bool:
        """Return whether a passing report with a failing exit code has a reason unrelated to any test."""
        return False

    def find_run_fault(self, suite: Suite, completed: Completed) -> RunFault | None:
        """Find out from its output why a run without a report has no results; None if unknown."""
        return None

    def explain_missing_program(self, suite: Suite) -> str:
        """Return what to do if the command's program is not installed."""
        program = suite.command[0]
        suffix = ", or a program that it starts," if program in STARTERS else ""
        return f"{program}{suffix} is not installed where the tests run."

    def suggest_remedy(self, suite: Suite, completed: Completed) -> str:
        """Return advice for a run without results, in sentences that end with a space; empty if there is none."""
        return ""

    def build_coverage_request(
        self, suite: Suite, environment: Environment, failing_ids: Sequence[str], ids: Sequence[str]
    ) -> SuiteRequest | None:
        """Build the request that runs the tests `ids`, among them the failing tests `failing_ids`, and records which
        lines they execute (`suites.spectrum`).

        None if the lines cannot be recorded.
        """
        return None

    def explain_misplaced_imports(self, suite: Suite, environment: Environment, completed: Completed) -> str:
        """Explain where tests import a copy of the project that edits miss, and what to do; empty if none does."""
        return ""

    def list_added_arguments(self, suite: Suite, files: Sequence[str]) -> list[str]:
        """List the arguments that the suite's command needs to run these new test files too."""
        return []

    def describe(self, suite: Suite) -> str:
        """Return the runner's common name."""
        return suite.runner

    def describe_interpreter(self, suite: Suite, environment: Environment) -> str:
        """Return the interpreter of the runner, such as `node 20.20.2`; empty if it is not known."""
        return environment.chosen


def list_unnamed_files(names: Sequence[str], files: Sequence[str]) -> list[str]:
    """List the files that the named files and directories do not include; empty if nothing is named."""
    places = [name.removeprefix("./").rstrip("/") for name in names]
    if not places or any(place in ("", ".") for place in places):
        return []
    return [file for file in files if not any(file == place or file.startswith(f"{place}/") for place in places)]


class Language:
    """A language without abilities; subclasses add theirs."""

    name: str
    """The display name: `Python`."""
    key = ""
    """Its name in options, settings and stored runs, if it has one: `python`."""
    suffixes: tuple[str, ...] = ()
    """The suffixes of its source files."""
    stub_suffixes: Mapping[str, str] = {}
    """The suffixes of files that only declare the types of a module beside them, each with that module's suffix."""
    runners: tuple[str, ...] = ()
    """The test runners that it supports, as `Suite.runner` names them."""
    example_suffixes: tuple[str, ...] = ()
    """The suffixes of text files whose examples its runners run as tests."""
    case_mark = re.compile(r"\[.*\]$", re.DOTALL)
    """The end of an ID that tells apart several cases of one test."""
    module_suffix = ""
    """The file suffix that a module's dotted name omits."""
    listed_suffixes: tuple[str, ...] = ()
    """The suffixes of files whose definitions a directory listing shows."""
    deepest_first = False
    """Whether a traceback begins with the line that failed."""
    reads_code = False
    """Whether Redstart parses its code to retrieve, check and edit it."""
    loads_hooks = False
    """Whether its processes load one of Redstart's files at startup (`suites.request.loading`)."""
    function_head = "def name(arguments):"
    """The first line of example code. An example in a question must look like code: a small model copies prose."""
    program = ""
    """The program that its tests need on PATH; empty if the environment is resolved in another way."""
    program_name = ""
    """That program's common name."""
    commands: Mapping[str, str] = {}
    """The usual command of each runner, for a project that does not define its own."""
    support_names: tuple[str, ...] = ()
    """Names of files that support tests but contain none."""
    programs: tuple[str, ...] = ()
    """Patterns of the programs that start its tests or run its scripts."""
    build_files: tuple[str, ...] = ()
    """Globs of the files that tell those programs how to build and start its tests."""

    def is_test_path(self, path: str) -> bool:
        """Return whether a path is a test in this language or supports its tests, by its name or directory."""
        raise NotImplementedError

    def get_protection(self, path: str) -> Protection | None:
        """Return why a patch may not touch this file, which is not a test; None if it may. `path` is in lower case."""
        return None

    def find_suite(self, folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
        """Find the suite of this directory; None if it has none in this language."""
        return None

    def find_suites(self, paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
        """Find the suites of a tree, in the root or in the projects below it."""
        return ()

    def find_started_suite(
        self, folder: str, paths: Sequence[str], read: Read, words: Sequence[str]
    ) -> SuitePlace | None:
        """Find the suite that the user's command starts; None if it starts none or that is unclear."""
        return None

    def find_command_runner(self, argv: Sequence[str]) -> str:
        """Return the runner that a command starts, if the command alone shows it; empty otherwise."""
        return ""

    def build_environment(self, base: Environment, folder: str, environ: Mapping[str, str]) -> Environment | None:
        """Derive the environment for the tests of this directory from Redstart's own; None for a Python interpreter.

        Raises `ConfigError` with a remedy if a requirement is missing.
        """
        return base

    def count_tests(self, data: bytes) -> int:
        """Count the tests in a file, by its text."""
        return 0

    def count_cases(self, text: str) -> int:
        """Count the cases of a new test file; each literal parameter set counts as one."""
        return 0

    def explain_invalid_test(self, path: str, text: str) -> str:
        """Return why a new file is not a usable test; empty if it is usable."""
        return f"{path} asserts nothing"

    def list_module_files(self, start: str) -> tuple[str, ...]:
        """List the files that may contain the module that a command starts; `start` is its name as a path."""
        return ()

    def list_own_packages(self, paths: Collection[str]) -> tuple[str, ...]:
        """List the tree's packages that tests import, as the runner's `sentinel` expects them."""
        return ()

    def list_importable_names(self, paths: Collection[str]) -> frozenset[str]:
        """Return the names that can be imported from these files."""
        return frozenset()

    def list_test_names(self, test_id: str) -> list[str]:
        """List the names inside the file, from the ID of a test."""
        return test_id.partition("[")[0].split("::")[1:]

    def create_code_reader(self, sources: Sources) -> CodeReader | None:
        """Create the reader of these files for retrieval; None if the language has none."""
        return None

    def outline(self, lines: Sequence[str]) -> list[Symbol] | None:
        """List the symbols that a file defines; None if no parser can read these lines."""
        return None

    @property
    def edited_code(self) -> EditedCode | None:
        """The checks for edits of its code."""
        return None

    def find_unreadable_line(self, path: str, data: bytes) -> int:
        """Find the first line that does not parse; 0 if all lines parse, or if another check covers the syntax."""
        return 0

    @property
    def snippets(self) -> Snippets | None:
        """How to run a snippet that a model wrote."""
        return None

    @property
    def new_programs(self) -> NewPrograms | None:
        """How to start a new program in it."""
        return None

    @property
    def packages(self) -> PackageManager | None:
        """How to read and install the dependencies of projects."""
        return None

    @property
    def runner(self) -> SuiteRunner | None:
        """The object that starts its `runners`; None if Redstart reads only the reports that a command leaves."""
        return None

    def list_inline_tests(self, data: bytes) -> tuple[str, ...]:
        """Find the tests that a source file contains besides its code."""
        return ()

    def create_source(self, path: str, data: bytes) -> Source:
        """Create the representation of a file for the checks."""
        from redstart.toolkit.checks.source import Source

        return Source(path, data)

    @property
    def code_checks(self) -> CodeChecks | None:
        """Static checks of its code."""
        return None

    @property
    def environment_problems(self) -> EnvironmentProblems | None:
        """Tells failures that no edit can fix from bugs."""
        return None

    def find_foreign_call(self, case: Case, project: ProjectView) -> EnvironmentProblem | None:
        """Find the package of which a failing test needs another version; None if the project may be at fault."""
        return None

    @property
    def change_reader(self) -> ChangeReader | None:
        """Interprets changes of its code; None if changes cannot be interpreted."""
        return None

    @property
    def lent_runner(self) -> LentRunner | None:
        """The runner that Redstart lends to a project that has none."""
        return None

    @property
    def alterer(self) -> Alterer | None:
        """Alters its tests to show that they can still fail."""
        return None

    @property
    def can_alter_tests(self) -> bool:
        return self.alterer is not None

    @property
    def green_checks(self) -> GreenChecks | None:
        """Checks of a patch whose targets pass that exist only for this language."""
        return None

    def create_tripwires(self, change: Change) -> Tripwires | None:
        """Create the tripwires for this change of its code; None if Redstart has no rules for the language."""
        return None

    def create_neutral_driver(self, patch: GreenPatch, view: TreeView) -> NeutralDriver | None:
        """Create the driver that calls the tests of this suite without their runner; None if that is impossible."""
        return None

    def create_mutants(self, path: str, text: bytes) -> list[Mutant]:
        """Create small changes to a program that its tests should detect; empty for a file that does not parse."""
        return []

    def list_definition_texts(self, owner: str, name: str) -> tuple[bytes, ...]:
        """Return texts that a file contains if it defines this test (in class `owner`, if any); empty if unknown."""
        return ()

    def explain_weaker_test(self, before: str, after: str) -> str:
        """Return how the new text of a test function asserts less than the old one; empty if it does not, or if that is
        unknown."""
        return ""

    def report_names(self, path: str, data: bytes) -> ReportNames:
        """List the names that a report may use for the tests of this file. Called only if `can_alter_tests`."""
        return ReportNames()
