"""What a language is to the rest of the toolkit.

A language is a value: a class with a few plain facts, and a property for each group of abilities. A group that is
absent means that Redstart cannot do this in the language, which callers say to the user. Properties import what they
need when they are asked for, so that a parser or a driver costs nothing in a project that does not use it.
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
    from redstart.toolkit.honesty.examine import GreenPatch
    from redstart.toolkit.honesty.mutant import Mutant
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
    from redstart.toolkit.looking.probes import Snippets
    from redstart.toolkit.looking.symbols import Symbol
    from redstart.toolkit.patching.edited_code import EditedCode
    from redstart.toolkit.patching.policy import Protection
    from redstart.toolkit.retrieval.code_reader import CodeReader
    from redstart.toolkit.retrieval.sources import Sources
    from redstart.toolkit.suites.problems.problem import SuiteProblem
    from redstart.toolkit.suites.request import SuiteRequest
    from redstart.toolkit.suites.view import TreeView

Read = Callable[[str], bytes | None]
"""The bytes of a file of the tree; None where there is none."""


STARTERS = ("make", "sh", "bash")
"""Programs that start whatever runs the tests."""


class SuitePlace(NamedTuple):
    """Where a suite of tests lies, and what runs it."""

    folder: str
    """Relative to the tree's root; empty for that."""
    runner: str
    command: tuple[str, ...] = ()
    """How the project itself starts the runner, where that matters."""


class ReportNames(NamedTuple):
    """What a report of a foreign runner may call the tests of a file."""

    words: frozenset[str] = frozenset()
    """Modules, classes and functions."""
    endings: tuple[str, ...] = ()
    """Titles, of which a report may show only the last."""


class ReadCases(NamedTuple):
    """What the reports of a run hold."""

    cases: list[Case] | None
    """None where no report can be read."""
    has_report: bool


class RunFault(NamedTuple):
    """Why there are no results per test: a sentence for the user and what it is about."""

    sentence: str
    problem: SuiteProblem


class SuiteRunner:
    """How the runners of a language are started, and what their runs say."""

    def command(
        self,
        suite: Suite,
        environment: Environment,
        *,
        ids: Sequence[str],
        sentinel: Sequence[str],
        vary: Variation,
        test_cpu: int,
    ) -> SuiteRequest:
        """The request that runs the whole suite, or at least the tests `ids` of it."""
        raise NotImplementedError

    def read(self, suite: Suite, completed: Completed) -> ReadCases:
        """The results per test that the run left."""
        raise NotImplementedError

    def another_command(
        self, suite: Suite, environment: Environment, completed: Completed, vary: Variation
    ) -> SuiteRequest | None:
        """What to run in place of a run that did not come to its tests because of us; None for any other run."""
        return None

    def selects(self, suite: Suite) -> bool:
        """Whether some tests can be run without the others."""
        return True

    def gives_exit_code(self, suite: Suite) -> bool:
        """Whether the exit code is one of pytest's, and not that of a command around the runner."""
        return False

    def explains(self, suite: Suite, cases: Sequence[Case], completed: Completed) -> bool:
        """Whether a green report and a red exit code have a reason that is not about any test."""
        return False

    def fault(self, suite: Suite, completed: Completed) -> RunFault | None:
        """Why a run without a report has no results, where its output says so."""
        return None

    def absent(self, suite: Suite) -> str:
        """What to do about a program of the command that is not there."""
        program = suite.command[0]
        also = ", or a program that it starts," if program in STARTERS else ""
        return f"{program}{also} is not installed where the tests run."

    def hint(self, suite: Suite, completed: Completed) -> str:
        """What to do about a run without results, in sentences that end with a blank; empty where nobody knows."""
        return ""

    def watched(
        self, suite: Suite, environment: Environment, red: Sequence[str], ids: Sequence[str]
    ) -> SuiteRequest | None:
        """What runs the tests `ids` and leaves which lines they run (`suites.spectrum`), the `red` ones among them.

        None where nobody can see it.
        """
        return None

    def misplaced(self, suite: Suite, environment: Environment, completed: Completed) -> str:
        """Where the tests import a copy of the project that no edit would reach: that, and what to do about it."""
        return ""

    def added_words(self, suite: Suite, files: Sequence[str]) -> list[str]:
        """What the suite's command needs added so that it runs these new test files too."""
        return []

    def describe(self, suite: Suite) -> str:
        """The runner by the name that people know it by."""
        return suite.runner

    def describe_interpreter(self, suite: Suite, environment: Environment) -> str:
        """What the runner runs on: `node 20.20.2`; empty where that is not known."""
        return environment.chosen


def beside(named: Sequence[str], files: Sequence[str]) -> list[str]:
    """The files that none of the named files and directories holds; none where nothing is named."""
    places = [name.removeprefix("./").rstrip("/") for name in named]
    if not places or any(place in ("", ".") for place in places):
        return []
    return [file for file in files if not any(file == place or file.startswith(f"{place}/") for place in places)]


class Language:
    """A language without abilities: subclasses add those that they have."""

    name: str
    """As people write it: `Python`."""
    key = ""
    """Its name in options, settings and stored runs, where it has one: `python`."""
    suffixes: tuple[str, ...] = ()
    """What the names of its source files end with."""
    runners: tuple[str, ...] = ()
    """The test runners that it knows, as `Suite.runner` names them."""
    example_suffixes: tuple[str, ...] = ()
    """What the names of texts end with whose examples its runners run as tests."""
    case_mark = re.compile(r"\[.*\]$", re.DOTALL)
    """What an id has at its end where several cases are of one test."""
    module_suffix = ""
    """What a dotted name of a module leaves out of the name of its file."""
    listed_suffixes: tuple[str, ...] = ()
    """What the names of files end with whose definitions a listing of their folder shows."""
    deepest_first = False
    """Whether a traceback begins with the line that failed."""
    reads_code = False
    """Whether Redstart reads its code: to find what matters, to judge it and to change it."""
    loads_hooks = False
    """Whether its processes load a file of ours when they start (`suites.request.loading`)."""
    function_head = "def name(arguments):"
    """How code begins. An example in a question must look like code: one of words is copied by a small model."""
    program = ""
    """What has to be on the path for its tests; empty where `environment` looks for it elsewhere."""
    program_name = ""
    """That program by the name that people know it by."""
    commands: Mapping[str, str] = {}
    """By runner: how people start it, where a project does not say so by itself."""
    support_names: tuple[str, ...] = ()
    """Names of files that belong to the tests and hold none."""
    programs: tuple[str, ...] = ()
    """Patterns of the programs that start its tests or run a script in it."""
    build_files: tuple[str, ...] = ()
    """Globs of the names of files that say how its tests are built and started by those programs."""

    def is_test_path(self, path: str) -> bool:
        """Whether a path of the tree is a test in this language, or supports its tests: by its name or directory."""
        raise NotImplementedError

    def protection(self, path: str) -> Protection | None:
        """Why a patch may not touch this file, which is no test; None where it may. `path` is in lower case."""
        return None

    def suite_in(self, folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
        """The suite of this folder; None where it has none in this language."""
        return None

    def suites_of(self, paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
        """The suites of a tree, in the root or in the projects below it."""
        return ()

    def started_by(self, folder: str, paths: Sequence[str], read: Read, words: Sequence[str]) -> SuitePlace | None:
        """The suite as a command of the user's starts it; None where that cannot be told, or starts none."""
        return None

    def runner_of_command(self, words: Sequence[str]) -> str:
        """The runner that a command starts, where the command alone tells; empty otherwise."""
        return ""

    def environment(self, own: Environment, folder: str, environ: Mapping[str, str]) -> Environment | None:
        """Where the tests of this folder run, from Redstart's own environment; None for an interpreter of Python.

        Raises `ConfigError` with a remedy where what it needs is not there.
        """
        return own

    def count_tests(self, data: bytes) -> int:
        """How many tests a file holds, by its text."""
        return 0

    def count_cases(self, text: str) -> int:
        """How many cases a new test file comes to, each set of parameters that is written out counted as one."""
        return 0

    def why_no_test(self, path: str, text: str) -> str:
        """Why a new file is no test to start from, in words; empty where it is."""
        return f"{path} asserts nothing"

    def module_files(self, start: str) -> tuple[str, ...]:
        """The files that may hold the module that a command starts; `start` is its name as a path."""
        return ()

    def own_packages(self, paths: Collection[str]) -> tuple[str, ...]:
        """What tests import of the files of a tree, as the runner's `sentinel` takes it."""
        return ()

    def importable_names(self, paths: Collection[str]) -> frozenset[str]:
        """The names that an import may find among these files."""
        return frozenset()

    def names_in(self, test_id: str) -> list[str]:
        """The names inside the file that a test's id gives."""
        return test_id.partition("[")[0].split("::")[1:]

    def code_reader(self, sources: Sources) -> CodeReader | None:
        """What reads the code of these files for retrieval."""
        return None

    def outline(self, lines: Sequence[str]) -> list[Symbol] | None:
        """The names that a file defines; None where no parser reads these lines."""
        return None

    @property
    def edited_code(self) -> EditedCode | None:
        """What judges edits of its code."""
        return None

    def unreadable_line(self, path: str, data: bytes) -> int:
        """The first line that its grammar cannot read; 0 where it reads all, or another check looks at the syntax."""
        return 0

    @property
    def snippets(self) -> Snippets | None:
        """How a snippet is run that a model wrote."""
        return None

    @property
    def new_programs(self) -> NewPrograms | None:
        """How a program is begun in it."""
        return None

    @property
    def packages(self) -> PackageManager | None:
        """What projects depend on, and how it is installed."""
        return None

    @property
    def runner(self) -> SuiteRunner | None:
        """What starts its `runners`; None where Redstart knows only the reports that a command leaves."""
        return None

    def inline_tests(self, data: bytes) -> tuple[str, ...]:
        """The tests that stand in a source file beside the code."""
        return ()

    def source(self, path: str, data: bytes) -> Source:
        """A file as the checks see it."""
        from redstart.toolkit.checks.source import Source

        return Source(path, data)

    @property
    def code_checks(self) -> CodeChecks | None:
        """What finds faults in its code by reading it."""
        return None

    @property
    def environment_problems(self) -> EnvironmentProblems | None:
        """What tells red that no edit can turn green from a bug."""
        return None

    @property
    def change_reader(self) -> ChangeReader | None:
        """What tells what a change of its code means; None where every change may mean anything."""
        return None

    @property
    def lent_runner(self) -> LentRunner | None:
        """What Redstart lends to a project that has no runner."""
        return None

    @property
    def alterer(self) -> Alterer | None:
        """What alters its tests, to see that they can still fail."""
        return None

    @property
    def can_alter_tests(self) -> bool:
        return self.alterer is not None

    @property
    def green_checks(self) -> GreenChecks | None:
        """Checks of a green that exist for this language alone."""
        return None

    def tripwires(self, change: Change) -> Tripwires | None:
        """What in this change of its code games the tests; None where Redstart has no rules for the language."""
        return None

    def neutral_driver(self, green: GreenPatch, view: TreeView) -> NeutralDriver | None:
        """What calls the tests of this suite without their runner; None where that cannot be done."""
        return None

    def mutants(self, path: str, text: bytes) -> list[Mutant]:
        """Small changes to a program, each of which its tests should notice; none of a file that cannot be read."""
        return []

    def definitions(self, owner: str, name: str) -> tuple[bytes, ...]:
        """What a file holds that defines this test, of that class where one is named; empty where nobody can tell."""
        return ()

    def report_names(self, path: str, data: bytes) -> ReportNames:
        """What a report may call the tests of this file. Asked where `can_alter_tests`."""
        return ReportNames()
