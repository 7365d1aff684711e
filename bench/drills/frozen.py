"""A worker is stopped in the middle of its runs until it counts as dead, and woken when others have ended the runs."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from _figures import Figure, expect_at_least, expect_equal, report_value
from drills.ground import DRIVERS, Ground, answer, create_tiny_repo, open_cluster
from drills.truth import check_runs
from redstart.core.run import RunState
from support.scenarios import parse_question
from support.server import Reply, Request

RUNS, QUICK_RUNS = 8, 3
SECONDS = 120.0
QUIET = 4.0
"""Without a new line for this many seconds, the woken worker has nothing more to write."""


class Holding:
    """A model that holds back the first patches until `go` is set; it answers later questions at once."""

    def __init__(self, count: int) -> None:
        self._left, self._lock = count, threading.Lock()
        self.all_asked, self.go = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> Reply:
        if parse_question(request) != "patch":
            return Reply(answer(request))
        with self._lock:
            self._left -= 1
            is_held = self._left >= 0
            if self._left == 0:
                self.all_asked.set()
        return Reply(answer(request), wait=self.go if is_held else None)


def measure_frozen_worker(*, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    count = QUICK_RUNS if quick else RUNS
    model = Holding(count)
    with open_cluster(model) as cluster:
        file = cluster.folder / "told"
        file.touch()
        frozen_worker = cluster.start_worker(driver=(str(DRIVERS / "telling_worker.py"), str(file)), at_once=count)
        frozen_worker.wait_ready()
        runs = asyncio.run(_submit_runs(cluster, count))
        if not model.all_asked.wait(SECONDS):
            raise TimeoutError("not all runs asked the model")
        frozen_worker.signal(signal.SIGSTOP)
        lines_before = len(file.read_text().splitlines())
        # The answers reach the connections of the stopped worker, which reads them when it wakes.
        model.go.set()
        began = time.monotonic()
        cluster.start_worker(at_once=count).wait_ready()
        results = asyncio.run(asyncio.wait_for(cluster.finish(runs), SECONDS))
        seconds = time.monotonic() - began
        states = _read_versions(cluster)
        frozen_worker.signal(signal.SIGCONT)
        lines = _wait_until_quiet(file, lines_before + count)[lines_before:]
        say(f"woken after {seconds:.0f} s; it tried {len(lines)} writes: {sorted(lines)}")
        report = check_runs(cluster, [run.run_id for run in runs])
        changed_count = sum(
            state != new_state for state, new_state in zip(states, _read_versions(cluster), strict=True)
        )
        frozen_worker.end()
    fenced_count = sum(line.endswith(" fenced") for line in lines)
    return [
        expect_equal("frozen_ended_by_others", results.count("verified"), count),
        expect_at_least("frozen_late_writes", len(lines), count),
        expect_equal("frozen_late_writes_not_fenced", len(lines) - fenced_count, 0),
        expect_equal("frozen_rows_changed_late", changed_count, 0),
        expect_equal("frozen_lost_or_twice", len(report.lost | report.gaps | report.twice), 0),
        report_value("frozen_takeover_seconds", seconds),
    ]


async def _submit_runs(ground: Ground, count: int) -> list[RunState]:
    runs = await ground.store_runs(create_tiny_repo(ground.folder / "calc"), count)
    await ground.submit(runs)
    return runs


def _read_versions(ground: Ground) -> list[tuple[object, ...]]:
    """Return everything that a driver writes: version and fence of each run, and its number of rows of each kind."""
    count_columns = ", ".join(
        f"(SELECT count(*) FROM {table} WHERE run_id = runs.id)" for table in ("steps", "events", "journal", "cards")
    )
    return ground.query_rows(f"SELECT id, version, fence, status, md5(state), {count_columns} FROM runs ORDER BY id")


def _wait_until_quiet(file: Path, minimum: int) -> list[str]:
    """Return the lines once there are enough and no more arrive."""
    ends, lines, last_change = time.monotonic() + SECONDS, file.read_text().splitlines(), time.monotonic()
    while time.monotonic() < ends:
        current = file.read_text().splitlines()
        if len(current) != len(lines):
            lines, last_change = current, time.monotonic()
        if time.monotonic() - last_change > (QUIET if len(lines) >= minimum else 3 * QUIET):
            break
        time.sleep(0.1)
    return lines
