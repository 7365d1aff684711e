"""The tests of an earlier run, from its JUnit file or its log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import ConfigError
from redstart.core.report import Case
from redstart.core.shell import Completed, ExitCause
from redstart.core.suite import Suite
from redstart.toolkit.suites.reading.junit import SIZE_LIMIT, read_foreign
from redstart.toolkit.suites.reading.log import list_logged_failures
from redstart.toolkit.suites.request import JUNIT
from redstart.toolkit.suites.runner import get_suite_runner
from redstart.toolkit.suites.suite_directory import TreeView


class ReportedTests(NamedTuple):
    """The tests that failed in an earlier run."""

    name: str
    """The name of the file that lists them."""
    ids: tuple[str, ...]


def read_reported_tests(junit: Path | None, log: Path | None, suite: Suite, view: TreeView) -> ReportedTests | None:
    """Read the failing tests of the file that is given, as the runner of the suite names them. None if none is given.

    Raises `ConfigError` if both are given, or if the file cannot be read or is of another kind.
    """
    if junit is not None and log is not None:
        raise ConfigError("--junit and --log cannot be combined", remedy="use only one of them")
    if junit is not None:
        ids = [case.id for case in _read_junit(junit, suite) if case.is_red]
    elif log is not None:
        ids = [failure.id for failure in list_logged_failures(_read_text(log))]
        if not ids:
            problem = f"{log} names no failing test of pytest or unittest"
            raise ConfigError(problem, remedy="give the whole log, or a JUnit file with --junit")
    else:
        return None
    path = junit or log
    return ReportedTests(path.name if path else "", tuple(dict.fromkeys(_find_id(id_, view) for id_ in ids)))


def read_reported_cases(path: Path, suite: Suite, view: TreeView) -> list[Case]:
    """Read all results of a JUnit file, as the runner of the suite names their tests.

    Raises `ConfigError` if the file cannot be read or is of another kind.
    """
    cases = (case.model_copy(update={"id": _find_id(case.id, view)}) for case in _read_junit(path, suite))
    return list({case.id: case for case in cases}.values())


def _read_junit(path: Path, suite: Suite) -> Sequence[Case]:
    text = _read_text(path)
    runner = None if suite.junit else get_suite_runner(suite)
    completed = Completed(exit_code=1, cause=ExitCause.failed, output="", files={JUNIT: text})
    cases = runner.read(suite, completed).cases if runner else None
    cases = read_foreign({path.name: text}) if cases is None else cases
    if cases is None:
        raise ConfigError(f"{path} is not JUnit XML", remedy="give the JUnit file of a test run")
    return cases


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise ConfigError(f"{path} is larger than {SIZE_LIMIT >> 20} MB", remedy="give the output of one test run")
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}", remedy="give another file") from error


def _find_id(id_: str, view: TreeView) -> str:
    """Name the test as it is named here: the other run may have started in another directory of the repo."""
    file, mark, rest = id_.partition("::")
    if not mark or view.find_file(id_):
        return id_
    alike = [path for path in view.snapshot_paths if path.endswith(f"/{file}") or file.endswith(f"/{path}")]
    return f"{alike[0]}{mark}{rest}" if len(alike) == 1 else id_
