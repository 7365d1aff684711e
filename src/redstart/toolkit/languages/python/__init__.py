"""Python and its test runners: pytest, unittest and Django's."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from redstart.core.report import Case
from redstart.core.shell import Environment
from redstart.toolkit.languages.abilities import ChangeReader, CodeChecks, EnvironmentProblems, GreenChecks, LentRunner
from redstart.toolkit.languages.protocol import Language, Read, ReportNames, SuitePlace, SuiteRunner

if TYPE_CHECKING:
    from redstart.toolkit.checks.source import Source
    from redstart.toolkit.honesty.controls.alteration import Alterer
    from redstart.toolkit.honesty.examination import GreenPatch
    from redstart.toolkit.honesty.mutation import Mutant
    from redstart.toolkit.honesty.neutral_surroundings import NeutralDriver
    from redstart.toolkit.honesty.tripwires.protocol import Change, Tripwires
    from redstart.toolkit.installs.manager import PackageManager
    from redstart.toolkit.languages.new_program import NewPrograms
    from redstart.toolkit.model_tools.probes import Snippets
    from redstart.toolkit.model_tools.symbols import Symbol
    from redstart.toolkit.patching.edited_code import EditedCode
    from redstart.toolkit.patching.policy import Protection
    from redstart.toolkit.retrieval.code_reader import CodeReader
    from redstart.toolkit.retrieval.sources import Sources
    from redstart.toolkit.suites.problems.environment import EnvironmentProblem
    from redstart.toolkit.suites.problems.project import ProjectView
    from redstart.toolkit.suites.suite_directory import TreeView

_TEST = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?|conftest)\.py[iw]?(?:/|$)|(?:^|/)tests?/(?:.*/)?[^/]+\.py[iw]?$",
    re.IGNORECASE,
)
_CONFIGURATION = frozenset(
    (
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "noxfile.py",
        ".coveragerc",
    )
)
_DEFINES = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_TEST_FUNCTION = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]+test\w*[ \t]*\(", re.MULTILINE)
_RUNS_AT_START = re.compile(r"(?:^|/)(?:sitecustomize|usercustomize)(?:\.py|/)|\.pth(?:/|$)")
_SHADOWS = re.compile(r"^(?:src/)?(?:pytest|_pytest|unittest|pluggy)(?:\.py|/)")


class PythonLanguage(Language):
    name = "Python"
    key = "python"
    suffixes = (".py", ".pyi", ".pyw")
    stub_suffixes: Mapping[str, str] = {".pyi": ".py"}
    module_suffix = ".py"
    listed_suffixes = (".py",)
    reads_code = loads_hooks = True
    example_suffixes = (".rst", ".txt", ".md")
    runners = ("pytest", "unittest", "django")
    commands: Mapping[str, str] = {
        "pytest": "python -m pytest",
        "unittest": "python -m unittest",
        "django": "python manage.py test",
    }
    support_names = ("conftest.py", "__init__.py")
    programs = (r"python[\d.]*", "pytest", r"py\.test", "tox", "nox", "nose2", "nosetests", "trial")

    def is_test_path(self, path: str) -> bool:
        return bool(_TEST.search(path))

    def get_protection(self, path: str) -> Protection | None:
        from redstart.toolkit.patching.policy import Protection

        # A directory can have the name of such a file and take its place elsewhere.
        if not _CONFIGURATION.isdisjoint(path.split("/")):
            return Protection.configuration
        if _RUNS_AT_START.search(path):
            return Protection.startup
        return Protection.runner if _SHADOWS.search(path) else None

    def find_suite(self, folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
        from redstart.toolkit.languages.python.detect import find_suite

        return find_suite(folder, paths, read)

    def find_suites(self, paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
        from redstart.toolkit.languages.python.detect import find_suites

        return find_suites(paths, read)

    def find_command_runner(self, argv: Sequence[str]) -> str:
        from redstart.toolkit.languages.python.django import parse_command
        from redstart.toolkit.languages.python.unittest import parse_unittest_arguments

        if parse_unittest_arguments(argv):
            return "unittest"
        return "django" if parse_command(argv) else ""

    def build_environment(self, base: Environment, folder: str, environ: Mapping[str, str]) -> None:
        return None

    def count_tests(self, data: bytes) -> int:
        return len(_TEST_FUNCTION.findall(data))

    def count_cases(self, text: str) -> int:
        from redstart.toolkit.languages.python.written_tests import count_cases

        return count_cases(text)

    def explain_invalid_test(self, path: str, text: str) -> str:
        from redstart.toolkit.languages.python.written_tests import explain_unusable_test

        return explain_unusable_test(path, text)

    def list_module_files(self, start: str) -> tuple[str, ...]:
        return (f"{start}.py", f"{start}/__main__.py", f"{start}/__init__.py")

    def list_own_packages(self, paths: Collection[str]) -> tuple[str, ...]:
        from redstart.toolkit.languages.python.modules import list_own_packages

        return list_own_packages(paths)

    def list_importable_names(self, paths: Collection[str]) -> frozenset[str]:
        from redstart.toolkit.languages.python.modules import list_importable_names

        return list_importable_names(paths)

    def create_code_reader(self, sources: Sources) -> CodeReader:
        from redstart.toolkit.languages.python.code_reader import PythonReader

        return PythonReader(sources)

    def outline(self, lines: Sequence[str]) -> list[Symbol] | None:
        from redstart.toolkit.languages.python.outline import outline

        return outline(lines)

    @property
    def edited_code(self) -> EditedCode:
        from redstart.toolkit.languages.python import edited_code

        return edited_code

    @property
    def snippets(self) -> Snippets:
        from redstart.toolkit.languages.python.snippets import PythonSnippets

        return PythonSnippets()

    @property
    def new_programs(self) -> NewPrograms:
        from redstart.toolkit.languages.python.new_program import PythonPrograms

        return PythonPrograms()

    @property
    def packages(self) -> PackageManager:
        from redstart.toolkit.languages.python.packages import PythonPackages

        return PythonPackages()

    @property
    def runner(self) -> SuiteRunner:
        from redstart.toolkit.languages.python.runners import PythonRunner

        return PythonRunner()

    def create_source(self, path: str, data: bytes) -> Source:
        from redstart.toolkit.languages.python.checks.source import PythonSource

        return PythonSource(path, data) if path.endswith(".py") else super().create_source(path, data)

    @property
    def code_checks(self) -> CodeChecks:
        from redstart.toolkit.languages.python.checks import tools

        return tools

    @property
    def environment_problems(self) -> EnvironmentProblems:
        from redstart.toolkit.languages.python import problems

        return problems

    def find_foreign_call(self, case: Case, project: ProjectView) -> EnvironmentProblem | None:
        from redstart.toolkit.languages.python.foreign_calls import find_foreign_call

        return find_foreign_call(case, project)

    @property
    def change_reader(self) -> ChangeReader:
        from redstart.toolkit.languages.python import change_reader

        return change_reader

    @property
    def lent_runner(self) -> LentRunner:
        from redstart.toolkit.languages.python.bundled_pytest import BundledPytest

        return BundledPytest()

    @property
    def alterer(self) -> Alterer:
        from redstart.toolkit.languages.python.alterer import PythonAlterer

        return PythonAlterer()

    def create_tripwires(self, change: Change) -> Tripwires:
        from redstart.toolkit.languages.python.tripwires.rules import PythonTripwires

        return PythonTripwires(change)

    def create_neutral_driver(self, patch: GreenPatch, view: TreeView) -> NeutralDriver | None:
        from redstart.toolkit.languages.python.neutral import PythonDriver

        return PythonDriver(patch, view)

    def create_mutants(self, path: str, text: bytes) -> list[Mutant]:
        from redstart.toolkit.languages.python.mutants import create_python_mutants

        return create_python_mutants(path, text) if path.endswith(".py") else []

    @property
    def green_checks(self) -> GreenChecks:
        from redstart.toolkit.languages.python import patch_checks

        return patch_checks

    def list_definition_texts(self, owner: str, name: str) -> tuple[bytes, ...]:
        return (f"def {name}(".encode(), *([f"class {owner.rsplit('.', maxsplit=1)[-1]}".encode()] if owner else []))

    def explain_weaker_test(self, before: str, after: str) -> str:
        from redstart.toolkit.languages.python.weaker_tests import explain_weaker_test

        return explain_weaker_test(before, after)

    def report_names(self, path: str, data: bytes) -> ReportNames:
        module = set[str]() if path.endswith(self.support_names) else {PurePosixPath(path).stem}
        return ReportNames(frozenset({*module, *(name.decode() for name in _DEFINES.findall(data))}))


LANGUAGE = PythonLanguage()
