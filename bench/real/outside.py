"""The outcomes of a project's tests as its developer runs them, reported by the runner's own hooks."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from _environments import BenchError, run
from real.prepare import Project, Ready

# Asks pytest itself, through its own hooks: the bench measures our reading of the report and must not reuse it.
WATCH = """\
import json, os
ends = {}

def pytest_runtest_logreport(report):
    was = ends.get(report.nodeid, "passed")
    ends[report.nodeid] = max(was, report.outcome, key=["passed", "skipped", "failed"].index)

def pytest_collectreport(report):
    if report.failed:
        ends[report.nodeid] = "failed"

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        with open(os.environ["BENCH_ENDS"], "w") as file:
            json.dump(ends, file)
"""
# The same for unittest: `python -m unittest`, with a result class that keeps the IDs.
WATCH_UNITTEST = """\
import json, os, sys, unittest

sys.path[0] = os.getcwd()
ends = {}
class Watched(unittest.TextTestResult):
    def startTest(self, test):
        ends[test.id()] = "passed"
        super().startTest(test)
runner = unittest.TextTestRunner(resultclass=Watched)
result = unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]], testRunner=runner, exit=False).result
worse = {"skipped": "skipped", "expectedFailures": "skipped", "failures": "failed", "errors": "failed"}
for name, end in worse.items():
    for test, _ in getattr(result, name):
        ends[getattr(test, "test_case", test).id()] = end
ends.update((test.id(), "failed") for test in result.unexpectedSuccesses)
with open(os.environ["BENCH_ENDS"], "w") as file:
    json.dump(ends, file)
"""
PASSED_ON = ("PYTEST_ADDOPTS", "PYTHONPATH", "BENCH_ENDS")
"""Variables that tox would otherwise hide from the tests."""
NOT_ROOT = ("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--uid", "1000", "--gid", "1000", "--")
"""Runs a command on the same machine as a user who is not root. Root may read any file, so tests of missing
permissions are skipped or fail only for root."""


class Ends(NamedTuple):
    """The outcomes of the tests of one run, by ID."""

    red: frozenset[str]
    green: frozenset[str]
    skipped: frozenset[str]

    @classmethod
    def from_mapping(cls, ends: Mapping[str, str]) -> Ends:
        def select_ids(*outcomes: str) -> frozenset[str]:
            return frozenset(id_ for id_, end in ends.items() if end in outcomes)

        return cls(select_ids("failed", "error"), select_ids("passed"), select_ids("skipped"))


def run_outside(project: Project, ready: Ready, directory: Path) -> Ends:
    """Run the project's tests as its developer does. Raises `BenchError` if the runner reports nothing."""
    watch, report_file = directory / "watch", directory / "ends.json"
    watch.mkdir(exist_ok=True)
    (watch / "bench_watch.py").write_text(WATCH)
    (watch / "bench_unittest.py").write_text(WATCH_UNITTEST)
    report_file.unlink(missing_ok=True)
    path = f"{ready.python.parent}:{os.environ['PATH']}"
    variables = {"VIRTUAL_ENV": str(ready.venv), "PATH": path, "BENCH_ENDS": str(report_file)}
    arguments = shlex.split(project.command) or (["python", "-m", "unittest"] if project.unittest else ["pytest"])
    if project.unittest:
        command = [ready.python, watch / "bench_unittest.py", *arguments[3:]]
    else:
        variables |= {
            "PYTHONPATH": str(watch),
            "PYTEST_ADDOPTS": "-p bench_watch --rootdir=. --continue-on-collection-errors --maxfail=0",
            "TOX_OVERRIDE": f"testenv.pass_env+={','.join(PASSED_ON)}",
        }
        command = [ready.python, "-m", *arguments] if arguments[0] == "pytest" else arguments
    completed = run([*(NOT_ROOT if os.geteuid() == 0 else ()), *command], ready.root, variables)
    if not report_file.exists():
        raise BenchError(f"{shlex.join(arguments)} reported nothing:\n{(completed.stdout + completed.stderr)[-1500:]}")
    return Ends.from_mapping(json.loads(report_file.read_text()))


def describe_difference(actual: Ends | None, expected: Ends) -> str:
    """Describe in one line the outcomes that differ inside and outside; empty if none do."""
    if actual is None:
        return "there is no baseline"
    differences: list[str] = []
    for name, inside, expected_ids in zip(Ends._fields, actual, expected, strict=True):
        if inside != expected_ids:
            extra, missing = sorted(inside - expected_ids), sorted(expected_ids - inside)
            differences.append(
                f"{name}: {len(extra)} inside only {extra[:3]}, {len(missing)} outside only {missing[:3]}"
            )
    return "; ".join(differences)
