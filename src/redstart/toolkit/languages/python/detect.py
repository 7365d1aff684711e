"""Detect from its files which test runner a tree's tests are written for."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import cast

from redstart.toolkit.base.code_files import FOREIGN
from redstart.toolkit.languages.protocol import Read, SuitePlace
from redstart.toolkit.languages.python.django import MANAGE, is_django_manage

PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
INI_SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}

PROJECT_FILES = frozenset(("pyproject.toml", "setup.py", "setup.cfg", *PYTEST_FILES))
"""A directory with one of these is a separate project."""

_OWN_PATTERN = re.compile(r"python_files|doctest")
"""With one of these settings, pytest may find tests in files that are not named as tests."""
_IMPORTS_PYTEST = re.compile(rb"^[ \t]*(?:import|from)[ \t]+pytest\b", re.MULTILINE)
_PLAIN_FUNCTION = re.compile(rb"^(?:async[ \t]+)?def[ \t]+test\w*", re.MULTILINE)
_PLAIN_CLASS = re.compile(rb"^class[ \t]+Test\w*[ \t]*(?:\([ \t]*(?:object)?[ \t]*\))?[ \t]*:", re.MULTILINE)
_IMPORTS_UNITTEST = re.compile(rb"^[ \t]*(?:import|from)[ \t]+unittest\b", re.MULTILINE)
_TEST_CASE = re.compile(rb"^[ \t]*class[ \t]+\w+[ \t]*\([^)]*TestCase\b", re.MULTILINE)


def is_python_test(path: str) -> bool:
    pure = PurePosixPath(path)
    if pure.suffix != ".py":
        return False
    return _has_test_name(pure) or pure.name == "conftest.py" or not {"tests", "test"}.isdisjoint(pure.parts[:-1])


def detect_runner(paths: Iterable[str], read: Read) -> str | None:
    """Return `pytest`, `unittest` or `django`, or None if the tree has no Python tests.

    `django`: the tree's root has the manage.py of a Django project, pytest is not configured, and no test needs it.
    `unittest`: every test is a method of a `unittest.TestCase`, in a file that unittest discovers (`test*.py`), and
    nothing indicates pytest. Ambiguous cases are left to pytest, which runs both kinds.
    `read` returns a file's bytes, or None if it cannot read the file.
    """
    own_paths = [path for path in paths if not _is_foreign(path)]
    is_configured, finds_more = _pytest_configuration(own_paths, read)
    tests = [path for path in own_paths if is_python_test(path) and PurePosixPath(path).name != "conftest.py"]
    texts = {path: read(path) or b"" for path in tests}
    has_tests = {path for path, text in texts.items() if _has_test_name(PurePosixPath(path)) or _has_tests(text)}
    if not has_tests:
        return "pytest" if is_configured and finds_more else None
    if is_configured or any(PurePosixPath(path).name == "conftest.py" for path in own_paths):
        return "pytest"
    if MANAGE in own_paths and is_django_manage(read(MANAGE) or b""):
        return "pytest" if any(_needs_pytest(text) for text in texts.values()) else "django"
    if any(_is_pytest_style(text) for text in texts.values()) or any(_is_pytest_only(path) for path in has_tests):
        return "pytest"
    test_texts = [texts[path] for path in has_tests if texts[path].strip()]
    if test_texts and all(_IMPORTS_UNITTEST.search(text) and _TEST_CASE.search(text) for text in test_texts):
        return "unittest"
    return "pytest"


def _has_test_name(path: PurePosixPath) -> bool:
    return path.name.startswith("test_") or path.stem.endswith("_test") or path.name in ("tests.py", "test.py")


def _is_pytest_only(path: str) -> bool:
    name = PurePosixPath(path)
    return name.stem.endswith("_test") and not name.name.startswith("test")


def _is_foreign(path: str) -> bool:
    folders = PurePosixPath(path).parts[:-1]
    return any(part in FOREIGN or (part.startswith(".") and part != "..") for part in folders)


def _has_tests(text: bytes) -> bool:
    return bool(_PLAIN_FUNCTION.search(text) or _PLAIN_CLASS.search(text) or _TEST_CASE.search(text))


def _needs_pytest(text: bytes) -> bool:
    return bool(_IMPORTS_PYTEST.search(text) or _PLAIN_FUNCTION.search(text))


def _is_pytest_style(text: bytes) -> bool:
    return _needs_pytest(text) or bool(_PLAIN_CLASS.search(text))


def _pytest_configuration(paths: Iterable[str], read: Read) -> tuple[bool, bool]:
    """Return whether pytest is configured in the tree, and whether it then also searches files with other names."""
    is_configured = finds_more = False
    for path in paths:
        if has_pytest_configuration(path, read):
            is_configured = True
            finds_more = finds_more or bool(_OWN_PATTERN.search(_read_text(path, read)))
    return is_configured, finds_more


def has_pytest_configuration(path: str, read: Read) -> bool:
    """Whether pytest would read its configuration from this file."""
    name = PurePosixPath(path).name
    if name in PYTEST_FILES:
        return True
    if name != "pyproject.toml" and name not in INI_SECTIONS:
        return False
    text = _read_text(path, read)
    if name == "pyproject.toml":
        return _has_pytest_table(text)
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except configparser.Error:
        return f"[{INI_SECTIONS[name]}]" in text
    return parser.has_section(INI_SECTIONS[name])


def _read_text(path: str, read: Read) -> str:
    return (read(path) or b"").decode("utf-8", "replace")


def _has_pytest_table(text: str) -> bool:
    try:
        tool = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return "[tool.pytest" in text
    return isinstance(tool, dict) and "pytest" in cast("dict[str, object]", tool)


def find_suite(folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
    """Find the suite of a directory; None if it has no Python tests."""
    runner = find_runner(folder, paths, read)
    return SuitePlace(folder, runner) if runner else None


def find_runner(folder: str, paths: Iterable[str], read: Read) -> str | None:
    """Find the runner of the tests in a directory; configuration in parent directories counts, as for pytest."""
    inside = f"{folder}/" if folder else ""
    ancestors = {str(item) for item in PurePosixPath(folder).parents} if folder else set[str]()
    relative_paths = {path.removeprefix(inside): path for path in paths if path.startswith(inside)}
    if folder:
        relative_paths |= {f"../{path}": path for path in paths if str(PurePosixPath(path).parent) in ancestors}
    return detect_runner(
        relative_paths, lambda relative: read(relative_paths[relative]) if relative in relative_paths else None
    )


def find_suites(paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
    """Find a tree's suites: the root's if it has tests or configures pytest, else one for each project with tests."""
    runner = detect_runner(paths, read)
    if runner is None:
        return ()
    projects = {str(PurePosixPath(path).parent) for path in paths if _is_project_file(path, read)}
    owners = {owner for path in paths if is_python_test(path) and (owner := _find_owner(path, projects)) is not None}
    is_configured = any("/" not in path and has_pytest_configuration(path, read) for path in paths)
    if is_configured or "." in owners or not owners:
        return (SuitePlace("", runner),)
    candidates = ((folder, find_runner(folder, paths, read)) for folder in sorted(owners))
    return tuple(SuitePlace(folder, runner) for folder, runner in candidates if runner) or (SuitePlace("", runner),)


def _is_project_file(path: str, read: Read) -> bool:
    name = PurePosixPath(path).name
    return name in PROJECT_FILES or (name == MANAGE and is_django_manage(read(path) or b""))


def _find_owner(path: str, projects: set[str]) -> str | None:
    """Find the outermost project below the root that contains a test; the root if none does, None if it is ignored."""
    if any(part.startswith(".") or part in ("node_modules", "site-packages") for part in path.split("/")):
        return None
    folders = [str(parent) for parent in PurePosixPath(path).parents][-2::-1]
    return next((folder for folder in folders if folder in projects), ".")
