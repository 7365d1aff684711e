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
    def of(cls, ends: Mapping[str, str]) -> Ends:
        def those(*outcomes: str) -> frozenset[str]:
            return frozenset(id_ for id_, end in ends.items() if end in outcomes)

        return cls(those("failed", "error"), those("passed"), those("skipped"))


def outside(project: Project, ready: Ready, into: Path) -> Ends:
    """Run the project's tests as its developer does. Raises `BenchError` if the runner reports nothing."""
    watch, told = into / "watch", into / "ends.json"
    watch.mkdir(exist_ok=True)
    (watch / "bench_watch.py").write_text(WATCH)
    (watch / "bench_unittest.py").write_text(WATCH_UNITTEST)
    told.unlink(missing_ok=True)
    path = f"{ready.python.parent}:{os.environ['PATH']}"
    variables = {"VIRTUAL_ENV": str(ready.venv), "PATH": path, "BENCH_ENDS": str(told)}
    words = shlex.split(project.command) or (["python", "-m", "unittest"] if project.unittest else ["pytest"])
    if project.unittest:
        command = [ready.python, watch / "bench_unittest.py", *words[3:]]
    else:
        variables |= {
            "PYTHONPATH": str(watch),
            "PYTEST_ADDOPTS": "-p bench_watch --rootdir=. --continue-on-collection-errors --maxfail=0",
            "TOX_OVERRIDE": f"testenv.pass_env+={','.join(PASSED_ON)}",
        }
        command = [ready.python, "-m", *words] if words[0] == "pytest" else words
    done = run([*(NOT_ROOT if os.geteuid() == 0 else ()), *command], ready.root, variables)
    if not told.exists():
        raise BenchError(f"{shlex.join(words)} reported nothing:\n{(done.stdout + done.stderr)[-1500:]}")
    return Ends.of(json.loads(told.read_text()))


def difference(seen: Ends | None, wanted: Ends) -> str:
    """Describe in one line the outcomes that differ inside and outside; empty if none do."""
    if seen is None:
        return "there is no baseline"
    told: list[str] = []
    for name, inside, there in zip(Ends._fields, seen, wanted, strict=True):
        if inside != there:
            more, fewer = sorted(inside - there), sorted(there - inside)
            told.append(f"{name}: {len(more)} inside only {more[:3]}, {len(fewer)} outside only {fewer[:3]}")
    return "; ".join(told)
