"""Does a test fail when the code that the promise rests on is changed? Mutation testing of that code.

Each mutant is one small change (a comparison turned round, a limit off by one, a step left out) in a module that
decides whether a patch counts: the verdict, the policy, `apply`, budgets, the journal, the fence of a run, the negative
controls. It is killed when a test fails with it. The tests run in three rounds until one fails: the quick tests that
import the module, all other quick tests, and the scenario tests named for the module. A mutant that no round notices
survives.

- killed: the share of the mutants that a test noticed.

Without `--quick`, at least 300 mutants are drawn with a fixed seed, evenly over the modules. With it, 40 of them run,
and a mutant that survives the first round is counted as a survivor at once, so the figure is a lower bound.

It needs nothing beside the package and pytest. Each worker changes a copy of `src`, never the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import _paths  # noqa: F401
from _figures import expect_at_least, print_figures
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.languages.python.mutants import create_python_mutants

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
UNIT, STRESS, SCENARIO = "tests/unit", "tests/stress", "tests/scenario"
SEED = 29
AIM = 0.95
FULL, QUICK = 330, 40
ROUND_SECONDS = 300
"""After which a round that does not end counts as a failed test: the mutant loops."""

GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "verdict": (
        ("toolkit/honesty/verdict/verdict.py", "toolkit/honesty/verdict/remaining_failures.py"),
        ("test_false_green.py", "test_flaky.py"),
    ),
    "policy": (("toolkit/patching/policy.py",), ("test_false_green.py",)),
    "apply": (("steps/apply.py",), ("test_proposal.py", "test_fix.py")),
    "budget": (("ports/model/budget.py",), ("test_budgets.py",)),
    "journal": (("engines/journal.py", "ports/sql/journal.py"), ("test_kill.py", "test_replay.py")),
    "fence": (("engines/lease.py", "ports/sql/commit.py"), ("test_kill.py", "test_run_states.py")),
    "negative controls": (
        (
            "toolkit/honesty/controls/negative_controls.py",
            "toolkit/honesty/controls/subjects.py",
            "toolkit/honesty/controls/alteration.py",
        ),
        ("test_refuted.py", "test_false_green.py"),
    ),
}
"""For each part, its modules and the scenario tests that use them most directly."""


class Task(NamedTuple):
    group: str
    mutant: Mutant


class Result(NamedTuple):
    task: Task
    killed_by: str
    """The round that noticed it; empty for a survivor."""
    seconds: float


def list_mutants() -> list[Task]:
    """All mutants of all groups. A module that lost its name fails the bench."""
    tasks: list[Task] = []
    for group, (modules, _) in GROUPS.items():
        for module in modules:
            text = (SRC / "redstart" / module).read_bytes()
            tasks += [Task(group, mutant) for mutant in create_python_mutants(module, text)]
    return tasks


def draw(tasks: Sequence[Task], count: int) -> list[Task]:
    """As evenly over the groups as their sizes allow, the same ones in every run on the same code."""
    chance = random.Random(SEED)
    piles = {group: [task for task in tasks if task.group == group] for group in GROUPS}
    for pile in piles.values():
        chance.shuffle(pile)
    drawn: list[Task] = []
    while len(drawn) < count and any(piles.values()):
        drawn += [pile.pop() for pile in piles.values() if pile]
    return drawn[:count]


def find_nearest_tests(module: str) -> list[str]:
    """List the unit and property tests that import the module, those with the fewest imports of the package first."""
    dotted_name = f"redstart.{module.removesuffix('.py').replace('/', '.')}"
    texts = {
        path: path.read_text(encoding="utf-8") for tier in (UNIT, STRESS) for path in (ROOT / tier).rglob("test_*.py")
    }
    nearest = [path for path, text in texts.items() if f"{dotted_name} import" in text or f"{dotted_name}." in text]
    nearest.sort(key=lambda path: (texts[path].count("from redstart"), path))
    return [str(path.relative_to(ROOT)) for path in nearest]


def list_rounds(task: Task, *, is_quick: bool) -> Iterator[tuple[str, list[str]]]:
    nearest = find_nearest_tests(task.mutant.path)
    if nearest:
        yield "nearest", ["--quick", *nearest]
    if is_quick and nearest:
        return
    yield "quick", ["--quick", UNIT, *(f"--ignore={path}" for path in nearest)]
    if not is_quick:
        yield "scenario", [f"{SCENARIO}/{name}" for name in GROUPS[task.group][1]]


class Worker:
    """A process that has the libraries loaded and forks for each run of pytest, on a copy of `src` of its own."""

    def __init__(self, folder: Path) -> None:
        self._src = folder / "src"
        shutil.copytree(SRC, self._src, ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "PYTHONPATH": str(self._src), "TMPDIR": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stamp = time.time() + 10

    def examine(self, task: Task, *, is_quick: bool) -> Result:
        """Change the copy, run the rounds until a test fails, and change it back."""
        path = self._src / "redstart" / task.mutant.path
        text = path.read_bytes()
        began = time.monotonic()
        try:
            self._write(path, task.mutant.apply_to(text))
            for name, arguments in list_rounds(task, is_quick=is_quick):
                if self._run(arguments):
                    return Result(task, name, time.monotonic() - began)
            return Result(task, "", time.monotonic() - began)
        finally:
            self._write(path, text)

    def check_unchanged(self, tasks: Sequence[Task]) -> None:
        """The tests pass without a mutant; otherwise every mutant would seem killed."""
        modules = {task.mutant.path: task for task in tasks}
        nearest = sorted({path for module in modules for path in find_nearest_tests(module)})
        if self._run(["--quick", *nearest]):
            raise SystemExit("the quick tests fail without any mutant; run `just quick`")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _write(self, path: Path, text: bytes) -> None:
        """With a time of its own: byte code is taken as fresh where time and size are the same."""
        path.write_bytes(text)
        self._stamp += 2
        os.utime(path, (self._stamp, self._stamp))

    def _run(self, arguments: list[str]) -> bool:
        """Whether pytest ended with anything but success."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a worker of the bench ended")
        return json.loads(line) != 0


def serve() -> None:
    """Run pytest in a fork for each line of arguments on stdin, and print its exit code."""
    import httpx  # noqa: F401
    import pydantic  # noqa: F401
    import pytest
    import rich.console  # noqa: F401
    import sqlalchemy  # noqa: F401
    import typer  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            os.setsid()
            signal.alarm(ROUND_SECONDS)
            null_device = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null_device, stream)
            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *json.loads(line)])
            os._exit(int(code))
        _, status = os.waitpid(child, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


def measure(tasks: Sequence[Task], jobs: int, *, is_quick: bool) -> list[Result]:
    """All mutants, on as many workers as there are jobs. Prints each survivor as it is found."""
    with tempfile.TemporaryDirectory(prefix="redstart-mutants-") as folder:
        workers = [Worker(Path(folder) / str(number)) for number in range(jobs)]
        free: Queue[Worker] = Queue()
        for worker in workers:
            free.put(worker)

        def examine(task: Task) -> Result:
            worker = free.get()
            try:
                result = worker.examine(task, is_quick=is_quick)
            finally:
                free.put(worker)
            if not result.killed_by:
                print(f"survived: {task.group}: {task.mutant.words} -> {task.mutant.text.decode()!r}", flush=True)
            return result

        try:
            workers[0].check_unchanged(tasks)
            with ThreadPoolExecutor(jobs) as pool:
                return list(pool.map(examine, tasks))
        finally:
            for worker in workers:
                worker.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} mutants against the nearest tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many mutants at once")
    parser.add_argument("--only", metavar="GROUP", choices=GROUPS, help="mutants of this group alone")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    tasks = [task for task in list_mutants() if options.only in (None, task.group)]
    results = measure(draw(tasks, QUICK if options.quick else FULL), options.jobs, is_quick=options.quick)
    print(f"{'part':<20} mutants  killed  by")
    for group in GROUPS:
        group_results = [result for result in results if result.task.group == group]
        rounds = [result.killed_by for result in group_results if result.killed_by]
        counts = ", ".join(f"{name} {rounds.count(name)}" for name in dict.fromkeys(rounds))
        print(f"{group:<20} {len(group_results):>7} {len(rounds):>7}  {counts}")
    killed = sum(bool(result.killed_by) for result in results) / len(results)
    print_figures("mutants", [expect_at_least("killed", killed, AIM)], mutants=len(results))


if __name__ == "__main__":
    main()
