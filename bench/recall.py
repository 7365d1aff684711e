"""Does every task end verified if its needed lines were shown? The instrument oracle-at-recall, from end to end.

The instrument gives the true fix if and only if its question holds every line that the fix changes, and otherwise a
patch that changes nothing. So it solves exactly the tasks that retrieval found. A task whose lines were shown but that
did not end verified was lost elsewhere: by edits that did not apply, checks, the proof, or the grading. The figures say
nothing about a model.

Small tasks are from HumanEvalFix, Python and JavaScript (`REDSTART_DATA`, see docs/benchmarks.md). Large tasks are
seeded changes of two packages from the package index, pinned by hash, with more than 50 source files each: the run must
find the file with the bug. Each task has three attempts. `--home FOLDER` keeps everything, and the same command
continues there after a stop. `--quick` takes one small task and one large one.

It needs git, node, a sandbox and the package index; the bench fails if one is unavailable.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from _environments import BenchError, make_plain_environment, run_pip
from _figures import expect_at_least, expect_equal, print_figures, report_value
from real.prepare import Sdist, download, unpack
from redstart.app.settings import Models, Settings
from redstart.app.settings import load as load_settings
from redstart.app.wire import open_app
from redstart.core.errors import ConfigError
from redstart.core.run import Limits
from redstart.evals.app import EvaluationRequest, build_plan, open_evaluation, open_lab, verify_all, without_unverified
from redstart.evals.mutate import mutate
from redstart.evals.outcome import RunOutcome
from redstart.evals.sets import load_set
from redstart.evals.task import Task, read_tasks, write_tasks

MODEL = "instrument:oracle-at-recall"
ATTEMPTS = 3
SEED = 1
LEAST, LEAST_LARGE, LEAST_FILES = 150, 75, 51
SMALL = {"humanevalfix_py": 56, "humanevalfix_js": 20}
WITHOUT_THE_SLOWEST = """def pytest_collection_modifyitems(items):
    items[:] = [one for one in items if one.name != "test_find_order_simple"]
"""


class Large(NamedTuple):
    sdist: Sdist
    sources: str
    """The folder of its code."""
    tasks: int
    packages: tuple[str, ...] = ()


LARGE = (
    Large(
        Sdist(
            name="algorithms",
            version="1.0.1",
            sha256="e2d140bc315eb1e106f2ab8c1f2ec595e01cb1ef0aa1506d20f93f75cf9fd8b1",
            # One of its 520 tests takes ten times as long as all the others together.
            files={"conftest.py": WITHOUT_THE_SLOWEST},
        ),
        "algorithms",
        56,
    ),
    Large(
        Sdist(
            name="markdown-it-py",
            version="4.3.0",
            sha256="91a58fa5b72c71a40cf7177250fd767480d7a2bb3ac426ccfb76fb90305fdaaa",
            files={"conftest.py": '"""The folder that tests import the package from."""\n'},
        ),
        "markdown_it",
        20,
        ("mdurl==0.1.2", "linkify-it-py==2.2.0", "pytest-regressions==2.11.0"),
    ),
)


class Count(NamedTuple):
    """The counts of one set of tasks."""

    name: str
    shown: int
    """Number of tasks for which a context held every line that the fix changes."""
    lost: tuple[str, ...]
    """The shown tasks that did not end verified."""
    missed: int
    guessed: tuple[str, ...]
    """Tasks that ended verified although their lines were never shown."""
    troubled: tuple[str, ...]

    @property
    def tasks(self) -> int:
        return self.shown + self.missed + len(self.troubled)


async def load_small_tasks(settings: Settings, name: str, count: int) -> list[Task]:
    """Return the first tasks of a set, without those that are not valid on this machine."""
    try:
        tasks = load_set(name, data=settings.data)[:count]
    except ConfigError as error:
        sys.exit(f"{error}: {error.remedy}")
    with open_app(settings) as app:
        async for item in verify_all(app.with_sandbox(), tasks, repeats=1):
            if not item.ok:
                print(f"{item.task} is left out: {item.why}")
    return without_unverified(settings, tasks)


async def create_large_tasks(settings: Settings, large: Large, directory: Path, count: int) -> list[Task]:
    """Make seeded changes of a package's code that its tests notice; they are made once in a folder."""
    file = directory / f"{large.sdist.name}.jsonl"
    if file.exists():
        return read_tasks(file.read_text(encoding="utf-8"), file.name)
    repo, python = directory / large.sdist.name, make_plain_environment(directory) / "bin" / "python"
    if not repo.exists():
        with tempfile.TemporaryDirectory(dir=directory) as work:
            unpacked, _ = unpack(large.sdist, download(large.sdist, Path(work)), Path(work), "repo")
            if large.packages:
                run_pip("install", "--quiet", *large.packages, python=python)
            unpacked.rename(repo)
    files = sum(1 for _ in (repo / large.sources).rglob("*.py"))
    if files < LEAST_FILES:
        raise BenchError(f"{large.sdist.name} has {files} source files")
    tasks: list[Task] = []
    tried_count = 0
    with open_app(settings) as app:
        async for item in mutate(app.with_sandbox(), repo, count=count, seed=SEED, python=str(python)):
            tried_count += 1
            tasks += [item.task] if item.task else []
    print(f"{large.sdist.name}: {files} source files, {tried_count} changes tried, {len(tasks)} tasks", flush=True)
    write_tasks(tasks, file)
    return tasks


def evaluate_tasks(settings: Settings, name: str, tasks: Sequence[Task]) -> Count:
    limits = Limits(attempts=ATTEMPTS, usd=None, tokens=None)
    plan = build_plan(EvaluationRequest(name, name=f"recall-{name}", limits=limits), tasks, MODEL)
    with open_lab(settings, plan.name) as lab:
        doing = open_evaluation(lab.app.with_sandbox(), lab.trials, plan, tasks, _print_outcome)
        asyncio.run(doing.go(2))
        rows = doing.results.list_rows()
    without_context = [row for row in rows if row.lines_shown is None]
    shown = [row for row in rows if row.lines_shown]
    missed = [row for row in rows if row.lines_shown is False]
    return Count(
        name,
        len(shown),
        tuple(_format_row(row) for row in shown if not (row.solved and row.claimed)),
        len(missed),
        tuple(_format_row(row) for row in missed if row.solved or row.claimed),
        tuple(_format_row(row) for row in without_context),
    )


def _print_outcome(row: RunOutcome) -> None:
    visibility = {True: "shown", False: "missed", None: "no context"}[row.lines_shown]
    print(f"{row.key.task}: {visibility}, {row.place.value}, {row.seconds:.0f} s {row.trouble}".rstrip(), flush=True)


def _format_row(row: RunOutcome) -> str:
    return f"{row.key.task} ({row.place.value}; {row.trouble or row.result})"


def count_sets(settings: Settings, directory: Path, *, quick: bool) -> tuple[list[Count], list[Count]]:
    """Return the counts of the small sets and of the large ones."""
    small: list[Count] = []
    large: list[Count] = []
    for name, count in list(SMALL.items())[: 1 if quick else None]:
        small.append(
            evaluate_tasks(settings, name, asyncio.run(load_small_tasks(settings, name, 1 if quick else count)))
        )
    for item in LARGE[: 1 if quick else None]:
        tasks = asyncio.run(create_large_tasks(settings, item, directory, 1 if quick else item.tasks))
        large.append(evaluate_tasks(settings, item.sdist.name, tasks))
    return small, large


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--home", type=Path, help="folder that keeps everything, to continue later")
    args = parser.parse_args()
    data = load_settings().data
    with ExitStack() as stack:
        directory = (args.home or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        settings = Settings(home=directory / "home", data=data, models=Models(strong=MODEL, fast=MODEL))
        try:
            os.environ["VIRTUAL_ENV"] = str(make_plain_environment(directory))
            small, large = count_sets(settings, directory, quick=args.quick)
        except (BenchError, ConfigError) as error:
            sys.exit(str(error))
    for item in (*small, *large):
        print(f"{item.name}: {item.tasks} tasks, the needed lines shown in {item.shown}, missed in {item.missed}")
        for label, names in (
            ("shown and not green", item.lost),
            ("green unshown", item.guessed),
            ("no context", item.troubled),
        ):
            for name in names:
                print(f"  {label}: {name}")
    all_counts = [*small, *large]
    minimum, least_large = (2, 1) if args.quick else (LEAST, LEAST_LARGE)
    figures = [
        expect_at_least("tasks", sum(item.tasks for item in all_counts), minimum),
        expect_at_least("tasks_large", sum(item.tasks for item in large), least_large),
        expect_equal("shown_and_lost", sum(len(item.lost) for item in all_counts), 0),
        expect_equal("missed_and_green", sum(len(item.guessed) for item in all_counts), 0),
        expect_equal("without_context", sum(len(item.troubled) for item in all_counts), 0),
        report_value("shown", sum(item.shown for item in all_counts)),
        report_value("missed", sum(item.missed for item in all_counts)),
    ]
    print_figures("recall", figures)


if __name__ == "__main__":
    main()
