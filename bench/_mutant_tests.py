"""Runs tests for `mutants.py`: a process that has the libraries loaded and forks for each run of pytest.

It reads one request as JSON from each line of its input and prints one answer. Only libraries are loaded before the
fork. Each fork imports all of the package afresh, so it cannot use any part that was imported without the mutant: a
library that would load the package ends the bench.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import sysconfig
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import anyio.pytest_plugin
import pytest

NEEDS_A_SERVER = {"postgres", "new_postgres", "project", "new_environment"}
"""Fixtures that start a server or install packages."""
LIBRARIES = tuple({f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Where libraries are installed. A fork imports everything else for itself: the package, its tests and benches."""
OPTIONS = ("-q", "-p", "no:cacheprovider", "--disable-plugin-autoload")


class Request(NamedTuple):
    arguments: list[str]
    """What pytest gets: options and files."""
    seconds: float
    """After which the run counts as one that does not end."""
    tests: list[str] | None = None
    """The tests to run, in this order; all tests of the files if it is None."""
    watched: dict[str, str] | None = None
    """Source files and their modules: record which of their lines each test runs that needs no server."""


class TestRun(NamedTuple):
    passed: bool
    seconds: float
    lines: dict[str, list[int]]
    """Of each watched module, the lines that the test ran."""


class Answer(NamedTuple):
    code: int
    """pytest's exit code, negative after a signal."""
    first_failure: str
    runs: dict[str, TestRun]
    libraries: list[str]


class Recorder:
    """Choose and sort the tests of one run, and record what happens in each."""

    def __init__(self, tests: Sequence[str] | None, watched: dict[str, str]) -> None:
        self._tests, self._watched = tests, watched
        self._lines: set[tuple[str, int]] = set()
        self._results: dict[str, list[pytest.TestReport]] = defaultdict(list)
        self._lines_of_tests: dict[str, set[tuple[str, int]]] = {}
        self.first_failure = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._tests is None:
            items[:] = [item for item in items if not self._watched or not _needs_a_server(item)]
            return
        items_by_id = {item.nodeid: item for item in items}
        items[:] = [items_by_id[test] for test in self._tests if test in items_by_id]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not self._watched:
            return (yield)
        self._lines = set()
        threading.settrace(self._trace_call)
        sys.settrace(self._trace_call)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # pyright: ignore[reportArgumentType]
            self._lines_of_tests[item.nodeid] = self._lines

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._results[report.nodeid].append(report)
        if report.failed and not self.first_failure:
            self.first_failure = report.nodeid

    def list_runs(self) -> dict[str, TestRun]:
        runs: dict[str, TestRun] = {}
        for test, reports in self._results.items():
            lines: dict[str, list[int]] = defaultdict(list)
            for module, line in sorted(self._lines_of_tests.get(test, ())):
                lines[module].append(line)
            passed = all(report.passed for report in reports)
            runs[test] = TestRun(passed, sum(report.duration for report in reports), lines)
        return runs

    def _trace_call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        module = self._watched.get(frame.f_code.co_filename)
        if module is None:
            return None
        lines = self._lines

        def trace_line(frame: FrameType, _event: str, _argument: object) -> Any:
            lines.add((module, frame.f_lineno))
            return trace_line

        return trace_line


def _needs_a_server(item: pytest.Item) -> bool:
    """Whether it needs one, or is left out unless it is asked for."""
    fixtures: Collection[str] = getattr(item, "fixturenames", ())
    is_left_out = any(item.get_closest_marker(name) for name in ("soak", "live"))
    return is_left_out or not NEEDS_A_SERVER.isdisjoint(fixtures) or "postgres" in item.name.partition("[")[2]


def serve() -> None:
    for line in sys.stdin:
        request = Request(**json.loads(line))
        answer = _run_in_fork(request)
        if request.watched is not None:
            _load(answer.libraries)
        print(json.dumps(answer._replace(libraries=[])), flush=True)


def _run_in_fork(request: Request) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer"
        child = os.fork()
        if not child:
            _run_as_child(request, path)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if path.exists():
            return Answer(*json.loads(path.read_text(encoding="utf-8")))
        return Answer(os.waitstatus_to_exitcode(status), "", {}, [])


def _run_as_child(request: Request, path: Path) -> None:
    os.setsid()
    signal.setitimer(signal.ITIMER_REAL, request.seconds)
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null_device, stream)
    recorder = Recorder(request.tests, request.watched or {})
    code = int(pytest.main([*OPTIONS, *request.arguments], plugins=[anyio.pytest_plugin, recorder]))
    libraries = [] if request.watched is None else [name for name, item in sys.modules.items() if _is_library(item)]
    answer = json.dumps(Answer(code, recorder.first_failure, recorder.list_runs(), libraries))
    path.with_suffix(".new").write_text(answer, encoding="utf-8")
    path.with_suffix(".new").rename(path)
    os._exit(0)


def _is_library(module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(LIBRARIES)


def _load(libraries: Sequence[str]) -> None:
    """Import them, so that the next forks have them. One that cannot be imported alone is left to the forks."""
    for name in libraries:
        if name not in sys.modules:
            with suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(name)
    if own := [name for name in sys.modules if name.partition(".")[0] == "redstart"]:
        raise SystemExit(f"a library loaded the package, so no mutant would be seen: {own[0]}")


if __name__ == "__main__":
    serve()
