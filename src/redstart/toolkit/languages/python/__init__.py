"""Python, and its runners pytest, unittest and Django's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from redstart.core.shell import Environment
from redstart.toolkit.languages.protocol import (
    GreenChecks,
    Language,
    Place,
    Read,
    ReportNames,
    SuiteRunner,
)

if TYPE_CHECKING:
    from redstart.toolkit.honesty.controls.alteration import Alterer
    from redstart.toolkit.honesty.examine import Green
    from redstart.toolkit.honesty.mutant import Mutant
    from redstart.toolkit.honesty.neutral_surroundings import Driver
    from redstart.toolkit.patching.policy import Protection
    from redstart.toolkit.suites.view import View

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


class Python(Language):
    name = "Python"
    suffixes = (".py", ".pyi", ".pyw")
    reads_code = loads_hooks = True
    example_suffixes = (".rst", ".txt", ".md")
    runners = ("pytest", "unittest", "django")
    support_names = ("conftest.py", "__init__.py")
    programs = (r"python[\d.]*", "pytest", r"py\.test", "tox", "nox", "nose2", "nosetests", "trial")

    def is_test_path(self, path: str) -> bool:
        return bool(_TEST.search(path))

    def protection(self, path: str) -> Protection | None:
        from redstart.toolkit.patching.policy import Protection

        # A directory may be called like a file, and stand in its place elsewhere.
        if not _CONFIGURATION.isdisjoint(path.split("/")):
            return Protection.configuration
        if _RUNS_AT_START.search(path):
            return Protection.startup
        return Protection.runner if _SHADOWS.search(path) else None

    def suite_in(self, folder: str, paths: Sequence[str], read: Read) -> Place | None:
        from redstart.toolkit.languages.python.detect import suite_in

        return suite_in(folder, paths, read)

    def suites_of(self, paths: Sequence[str], read: Read) -> tuple[Place, ...]:
        from redstart.toolkit.languages.python.detect import suites_of

        return suites_of(paths, read)

    def environment(self, own: Environment, folder: str, environ: Mapping[str, str]) -> None:
        return None

    def count_tests(self, data: bytes) -> int:
        return len(_TEST_FUNCTION.findall(data))

    @property
    def runner(self) -> SuiteRunner:
        from redstart.toolkit.languages.python.runners import PythonRunner

        return PythonRunner()

    @property
    def alterer(self) -> Alterer:
        from redstart.toolkit.languages.python.alterer import PythonAlterer

        return PythonAlterer()

    def neutral_driver(self, green: Green, view: View) -> Driver | None:
        from redstart.toolkit.languages.python.neutral import PythonDriver

        return PythonDriver(green, view)

    def mutants(self, path: str, text: bytes) -> list[Mutant]:
        from redstart.toolkit.languages.python.mutants import python_mutants

        return python_mutants(path, text) if path.endswith(".py") else []

    @property
    def green_checks(self) -> GreenChecks:
        from redstart.toolkit.languages.python import green_checks

        return green_checks

    def definitions(self, owner: str, name: str) -> tuple[bytes, ...]:
        return (f"def {name}(".encode(), *([f"class {owner.rsplit('.', maxsplit=1)[-1]}".encode()] if owner else []))

    def report_names(self, path: str, data: bytes) -> ReportNames:
        module = set[str]() if path.endswith(self.support_names) else {PurePosixPath(path).stem}
        return ReportNames(frozenset({*module, *(name.decode() for name in _DEFINES.findall(data))}))


LANGUAGE = Python()
