"""Does a test fail when the code that the promise rests on is changed? Mutation testing of that code.

Each mutant is one small change (a comparison turned round, a limit off by one, a step left out) in a module that
decides whether a patch counts: the verdict, the policy, `apply`, budgets, the journal, the fence of a run, the negative
controls. It is killed when a test fails with it.

First, the tests run once without a mutant. That tells which lines each test runs and how long it takes; a test that
fails then is left out. A mutant meets the tests that run its statement, the fastest first, until one fails. They come
in rounds: the tests nearest to the module, all other quick tests, the contract tests of its part on a server too, and
the scenario tests named for its part. A mutant that no round notices survives. At the end, each test that killed a
mutant must pass without one again.

- killed: the share of the mutants that a test noticed.

Without `--quick`, at least 300 mutants are drawn with a fixed seed, evenly over the modules. With it, 40 of them run,
and a mutant that survives the first round is counted as a survivor at once, so the figure is a lower bound.

It needs nothing beside the package and pytest. Each worker changes a copy of `src`, never the repository.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple, TypeVar

import _paths  # noqa: F401
from _figures import expect_at_least, print_figures
from _mutant_tests import Answer, Request, TestRun
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.languages.python.mutants import create_python_mutants

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
UNIT, CONTRACT, STRESS, SCENARIO = "tests/unit", "tests/contract", "tests/stress", "tests/scenario"
SEED = 29
AIM = 0.95
FULL, QUICK = 330, 40
BASELINE_SECONDS, SCENARIO_SECONDS = 900, 900
FILES_PER_RUN = 16
"""How many files of tests one process takes when the tests run without a mutant."""
NO_TESTS_RAN = 5
"""pytest's exit code for a run without any test."""


class Part(NamedTuple):
    modules: tuple[str, ...]
    contract: tuple[str, ...]
    """The contract tests of its ports."""
    scenario: tuple[str, ...]
    """The scenario tests that use it most directly."""


PARTS = {
    "verdict": Part(
        ("toolkit/honesty/verdict/verdict.py", "toolkit/honesty/verdict/remaining_failures.py"),
        (),
        ("test_false_green.py", "test_flaky.py"),
    ),
    "policy": Part(("toolkit/patching/policy.py",), (), ("test_false_green.py",)),
    "apply": Part(("steps/apply.py",), (), ("test_proposal.py", "test_fix.py")),
    "budget": Part(("ports/model/budget.py",), (), ("test_budgets.py",)),
    "journal": Part(
        ("engines/journal.py", "ports/sql/journal.py"), ("test_journal.py",), ("test_kill.py", "test_replay.py")
    ),
    "fence": Part(
        ("engines/lease.py", "ports/sql/commit.py"),
        ("test_store.py", "test_memory.py", "test_lessons_kept.py"),
        ("test_kill.py", "test_run_states.py"),
    ),
    "negative controls": Part(
        (
            "toolkit/honesty/controls/negative_controls.py",
            "toolkit/honesty/controls/subjects.py",
            "toolkit/honesty/controls/alteration.py",
        ),
        (),
        ("test_refuted.py", "test_false_green.py"),
    ),
}


Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class Task(NamedTuple):
    group: str
    mutant: Mutant


class Result(NamedTuple):
    task: Task
    killed_by: str
    """The round that noticed it; empty for a survivor."""
    test: str
    """The test that failed; empty if the tests could not be imported or did not end."""


class Round(NamedTuple):
    name: str
    request: Request


def list_mutants() -> list[Task]:
    """All mutants of all groups. A module that lost its name fails the bench."""
    tasks: list[Task] = []
    for group, part in PARTS.items():
        for module in part.modules:
            text = (SRC / "redstart" / module).read_bytes()
            tasks += [Task(group, mutant) for mutant in create_python_mutants(module, text)]
    return tasks


def draw(tasks: Sequence[Task], count: int) -> list[Task]:
    """As evenly over the groups as their sizes allow, the same ones in every run on the same code."""
    chance = random.Random(SEED)
    piles = {group: [task for task in tasks if task.group == group] for group in PARTS}
    for pile in piles.values():
        chance.shuffle(pile)
    drawn: list[Task] = []
    while len(drawn) < count and any(piles.values()):
        drawn += [pile.pop() for pile in piles.values() if pile]
    return drawn[:count]


def find_nearest_tests(module: str) -> list[str]:
    """List the tests of the module: the unit tests that mirror it, the contract tests of its part, the unit tests that
    import it, those with the fewest imports of the package first, and at last the property tests that import it."""
    dotted_name = f"redstart.{module.removesuffix('.py').replace('/', '.')}"
    contract = [ROOT / CONTRACT / name for part in PARTS.values() if module in part.modules for name in part.contract]
    nearest = [*find_mirrors(module), *contract]
    for tier in (UNIT, STRESS):
        texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / tier).rglob("test_*.py")}
        importing = [
            path for path, text in texts.items() if f"{dotted_name} import" in text or f"{dotted_name}." in text
        ]
        nearest += sorted(importing, key=lambda path: (texts[path].count("from redstart"), path))
    return list(dict.fromkeys(str(path.relative_to(ROOT)) for path in nearest if path.exists()))


def find_mirrors(module: str) -> list[Path]:
    """Where the tests of the module are expected: a test of a step may be named after the step."""
    path = ROOT / UNIT / module
    return [path.with_name(f"test_{path.stem}{suffix}.py") for suffix in ("", "_step")]


def find_statement(module: str, mutant: Mutant) -> set[int]:
    """List the lines of the statement that the mutant changes. Empty for one that runs when the module is imported."""
    tree = ast.parse((SRC / "redstart" / module).read_bytes())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not any(node.body[0].lineno <= mutant.line <= (node.end_lineno or 0) for node in functions):
        return set()
    spans = [_get_own_lines(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return set(min((span for span in spans if mutant.line in span), key=len))


def _get_own_lines(node: ast.stmt) -> range:
    """The lines of a statement without those of the statements in it."""
    body: Sequence[ast.stmt] = getattr(node, "body", ())
    end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
    return range(node.lineno, max(end, node.lineno + 1))


def list_rounds(task: Task, tests: Mapping[str, TestRun], *, is_quick: bool) -> Iterator[Round]:
    """Plan the runs of tests that the mutant meets until one fails."""
    module = task.mutant.path
    lines = find_statement(module, task.mutant)
    able = [
        test
        for test, run in tests.items()
        if run.passed and (lines & set(run.lines.get(module, ())) if lines else run.lines.get(module))
    ]
    able.sort(key=lambda test: tests[test].seconds)
    by_file: dict[str, list[str]] = {file: [] for file in find_nearest_tests(module)}
    nearest_files = list(by_file)
    for test in able:
        by_file.setdefault(test.partition("::")[0], []).append(test)
    nearest = [(file, by_file.pop(file)) for file in nearest_files]
    nearest = [(file, found) for file, found in nearest if found]
    for part in (nearest[:1], nearest[1:]):
        if part:
            yield Round("nearest", request_tests([test for _, found in part for test in found], tests))
    if is_quick:
        return
    others = [test for test in able if test.partition("::")[0] in by_file]
    if others:
        yield Round("quick", request_tests(others, tests))
    part = PARTS[task.group]
    for name, folder, files in (("contract", CONTRACT, part.contract), ("scenario", SCENARIO, part.scenario)):
        if files:
            yield Round(name, Request(["-x", *(f"{folder}/{file}" for file in files)], SCENARIO_SECONDS))


def request_tests(chosen: list[str], tests: Mapping[str, TestRun]) -> Request:
    files = dict.fromkeys(test.partition("::")[0] for test in chosen)
    return Request(["-x", *files], 30 + 10 * sum(tests[test].seconds for test in chosen), chosen)


class Worker:
    """A process that runs pytest, on a copy of `src` of its own."""

    def __init__(self, folder: Path) -> None:
        self._src = folder / "src"
        shutil.copytree(SRC, self._src, ignore=shutil.ignore_patterns("__pycache__"))
        environment = {**os.environ, "PYTHONPATH": str(self._src), "TMPDIR": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("_mutant_tests.py"))],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stamp = time.time() + 10

    def examine(self, task: Task, tests: Mapping[str, TestRun], *, is_quick: bool) -> Result:
        """Change the copy, run the rounds until a test fails, and change it back."""
        path = self._src / "redstart" / task.mutant.path
        text = path.read_bytes()
        try:
            self._write(path, task.mutant.apply_to(text))
            for name, request in list_rounds(task, tests, is_quick=is_quick):
                answer = self.run(request)
                if answer.code == NO_TESTS_RAN:
                    raise SystemExit(f"no test ran: {request.arguments}")
                if answer.code:
                    return Result(task, name, answer.first_failure)
            return Result(task, "", "")
        finally:
            self._write(path, text)

    def record(self, files: Sequence[str], options: Sequence[str], modules: Sequence[str]) -> dict[str, TestRun]:
        """Run the tests of these files without a mutant, and record which lines of the modules each one runs."""
        watched = {str(self._src / "redstart" / module): module for module in modules}
        answer = self.run(Request([*options, *files], BASELINE_SECONDS, None, watched))
        if answer.code not in (0, 1, NO_TESTS_RAN):
            raise SystemExit(f"the tests do not run without a mutant (exit code {answer.code}): {' '.join(files)}")
        return answer.runs

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def run(self, request: Request) -> Answer:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request._asdict()), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a worker of the bench ended")
        code, first_failure, runs, libraries = json.loads(line)
        return Answer(code, first_failure, {test: TestRun(*run) for test, run in runs.items()}, libraries)

    def _write(self, path: Path, text: bytes) -> None:
        """With a time of its own: byte code is taken as fresh where time and size are the same."""
        path.write_bytes(text)
        self._stamp += 2
        os.utime(path, (self._stamp, self._stamp))


class Crew:
    """As many workers as there are jobs."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self._workers = [Worker(folder / str(number)) for number in range(jobs)]
        self._free: Queue[Worker] = Queue()
        for worker in self._workers:
            self._free.put(worker)

    @property
    def size(self) -> int:
        return len(self._workers)

    def map(self, work: Callable[[Worker, Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
        """Give each item to a worker that is free."""

        def give(item: Item) -> Outcome:
            worker = self._free.get()
            try:
                return work(worker, item)
            finally:
                self._free.put(worker)

        with ThreadPoolExecutor(len(self._workers)) as pool:
            return list(pool.map(give, items))

    def close(self) -> None:
        for worker in self._workers:
            worker.close()


def record_tests(crew: Crew, modules: Sequence[str], *, is_quick: bool) -> dict[str, TestRun]:
    """Run the nearest tests and, unless `is_quick`, all quick tests without a mutant. Name those that fail."""
    nearest = sorted({path for module in modules for path in find_nearest_tests(module)})
    if is_quick:
        parts = [([], part) for part in split([path for path in nearest if not path.startswith(STRESS)], crew.size)]
    else:
        files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / UNIT).rglob("test_*.py"))
        others = [path for path in files if path not in nearest]
        parts = [([], part) for part in split(nearest, len(nearest) // FILES_PER_RUN + 1)]
        parts += [(["--quick"], part) for part in split(others, len(others) // FILES_PER_RUN + 1)]
    recorded = crew.map(lambda worker, part: worker.record(*part, modules), parts)
    tests = {test: run for runs in recorded for test, run in runs.items()}
    for test, run in tests.items():
        if not run.passed:
            print(f"left out, does not pass without a mutant: {test}", flush=True)
    return tests


def split(files: Sequence[str], count: int) -> list[list[str]]:
    """Deal the files out to this many parts."""
    return [list(files[start::count]) for start in range(count)]


def find_false_alarms(crew: Crew, results: Sequence[Result]) -> set[str]:
    """Run the tests that killed a mutant once more without one, and return those that fail."""
    killers = sorted({result.test for result in results if result.test})
    [answer] = crew.map(lambda worker, chosen: worker.run(request_confirmation(chosen)), [killers])
    return {test for test in killers if test not in answer.runs or not answer.runs[test].passed}


def request_confirmation(chosen: list[str]) -> Request:
    files = dict.fromkeys(test.partition("::")[0] for test in chosen)
    return Request(list(files), SCENARIO_SECONDS, chosen)


def measure(tasks: Sequence[Task], jobs: int, *, is_quick: bool) -> list[Result]:
    """All mutants, on as many workers as there are jobs. Prints each survivor as it is found."""
    with tempfile.TemporaryDirectory(prefix="redstart-mutants-") as folder:
        crew = Crew(Path(folder), jobs)
        try:
            began = time.monotonic()
            tests = record_tests(crew, sorted({task.mutant.path for task in tasks}), is_quick=is_quick)
            print(f"{len(tests)} tests without a mutant: {time.monotonic() - began:.0f} s", flush=True)

            def examine(worker: Worker, task: Task) -> Result:
                result = worker.examine(task, tests, is_quick=is_quick)
                if not result.killed_by:
                    print(f"survived: {describe(task)}", flush=True)
                return result

            results = crew.map(examine, tasks)
            false_alarms = find_false_alarms(crew, results)
        finally:
            crew.close()
    for result in results:
        if result.test in false_alarms:
            print(f"survived, as {result.test} fails without it too: {describe(result.task)}", flush=True)
    return [result._replace(killed_by="") if result.test in false_alarms else result for result in results]


def describe(task: Task) -> str:
    return f"{task.group}: {task.mutant.words} -> {task.mutant.text.decode()!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} mutants against the nearest tests")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many mutants at once")
    parser.add_argument("--only", metavar="GROUP", choices=PARTS, help="mutants of this group alone")
    options = parser.parse_args()
    drawn = draw(list_mutants(), QUICK if options.quick else FULL)
    tasks = [task for task in drawn if options.only in (None, task.group)]
    results = measure(tasks, options.jobs, is_quick=options.quick)
    print(f"{'part':<20} mutants  killed  by")
    for group in PARTS:
        group_results = [result for result in results if result.task.group == group]
        rounds = [result.killed_by for result in group_results if result.killed_by]
        counts = ", ".join(f"{name} {rounds.count(name)}" for name in dict.fromkeys(rounds))
        print(f"{group:<20} {len(group_results):>7} {len(rounds):>7}  {counts}")
    killed = sum(bool(result.killed_by) for result in results) / len(results)
    print_figures("mutants", [expect_at_least("killed", killed, AIM)], mutants=len(results))


if __name__ == "__main__":
    main()
