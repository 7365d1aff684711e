"""The overhead of `redstart eval`: its time beside the sum of the times of its runs.

It uses QuixBugs tasks (`REDSTART_DATA`, see docs/benchmarks.md) with the instrument oracle-at-recall, which asks no
model, in an environment with nothing but pytest. The runs are as short as runs can be, so the overhead is most visible.
Each task is checked first, as `redstart eval verify` does; then the tasks are evaluated one at a time and two at a
time. Everything except the runs counts as overhead: laying out tasks, the hidden tests, reading what a run did, the
store. The runs' own seconds are those of the same evaluation, so the slowdown of two parallel runs does not count. It
does not count either that one of two workers ends before the other. `--quick` takes 4 tasks instead of 12. The bench
needs the package index for pytest.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from _environments import make_plain_environment
from _figures import expect_at_most, print_figures, report_value
from redstart.app.settings import Models, Settings
from redstart.app.settings import load as load_settings
from redstart.app.wire import open_app
from redstart.core.errors import ConfigError
from redstart.evals.app import EvaluationRequest, build_plan, open_evaluation, open_lab, verify_all
from redstart.evals.outcome import RunOutcome
from redstart.evals.sets import load_set
from redstart.evals.task import Task

AIM = 1.05
MODEL = "instrument:oracle-at-recall"
# None of them runs forever with its bug: a run that waits for a timeout would hide the overhead.
NAMES = (
    *("bucketsort", "flatten", "breadth_first_search", "detect_cycle", "get_factors", "hanoi"),
    *("is_valid_parenthesization", "kth", "lis", "max_sublist_sum", "next_permutation", "pascal"),
)


class Measured(NamedTuple):
    busy: float
    """Total seconds from the start to the end of each worker."""
    own: float
    """Total seconds of the runs themselves."""
    graded: float
    """The seconds of the overhead that hidden tests took."""

    @property
    def ratio(self) -> float:
        return self.busy / self.own


def choose_tasks(settings: Settings, count: int) -> list[Task]:
    try:
        all_tasks = {task.id: task for task in load_set("quixbugs", data=settings.data)}
    except ConfigError as error:
        sys.exit(f"{error}: {error.remedy}")
    return [all_tasks[f"quixbugs/{name}"] for name in NAMES[:count]]


async def verify_tasks(settings: Settings, tasks: Sequence[Task]) -> None:
    with open_app(settings) as app:
        async for item in verify_all(app.with_sandbox(), tasks, repeats=1):
            if not item.ok:
                sys.exit(f"{item.task} is not a valid task on this machine: {item.why}")


def measure_tasks(settings: Settings, tasks: Sequence[Task], parallel: int) -> Measured:
    rows: list[RunOutcome] = []
    ends: list[float] = []

    def record_outcome(row: RunOutcome) -> None:
        rows.append(row)
        ends.append(time.monotonic() - began)

    plan = build_plan(EvaluationRequest("quixbugs", name=f"parallel-{parallel}"), tasks, MODEL)
    began = time.monotonic()
    with open_lab(settings, plan.name) as lab:
        asyncio.run(open_evaluation(lab.app.with_sandbox(), lab.trials, plan, tasks, record_outcome).go(parallel))
    # Usually each of the last rows is of another worker. If two are of one worker, this counts slightly too much.
    busy_seconds = sum(ends[-parallel:])
    unsolved = [f"{row.key}: {row.place.value} {row.trouble}" for row in rows if not row.solved]
    if unsolved:
        sys.exit(f"the oracle must solve all tasks; it did not solve {'; '.join(unsolved)}")
    return Measured(busy_seconds, sum(row.seconds for row in rows), sum(row.graded_in for row in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    data = load_settings().data
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["VIRTUAL_ENV"] = str(make_plain_environment(folder))
        settings = Settings(home=folder / "home", data=data, models=Models(strong=MODEL, fast=MODEL))
        tasks = choose_tasks(settings, 4 if quick else len(NAMES))
        asyncio.run(verify_tasks(settings, tasks))
        measurements = {parallel: measure_tasks(settings, tasks, parallel) for parallel in (1, 2)}
    for parallel, item in measurements.items():
        print(
            f"{len(tasks)} tasks, {parallel} at once: {item.busy:.1f} s (runs {item.own:.1f} s, hidden tests "
            f"{item.graded:.1f} s); ratio {item.ratio:.3f}, "
            f"without hidden tests {(item.busy - item.graded) / item.own:.3f}"
        )
    worst = max(item.ratio for item in measurements.values())
    figures = [report_value(f"overhead_ratio_{parallel}", item.ratio) for parallel, item in measurements.items()]
    print_figures("evals", [*figures, expect_at_most("overhead_ratio", worst, AIM)])


if __name__ == "__main__":
    main()
