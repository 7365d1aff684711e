"""A worker is stopped in the middle of its runs until it counts as dead, and woken when others have ended the runs."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from _figures import Figure, at_least, exactly, told
from drills.ground import DRIVERS, Ground, answer, new_ground, tiny_repo
from drills.truth import truth
from redstart.core.run import RunState
from support.scenarios import question
from support.server import Reply, Request

RUNS, QUICK_RUNS = 8, 3
SECONDS = 120.0
QUIET = 4.0
"""Without a new line for this many seconds, the woken worker has nothing more to write."""


class Holding:
    """A model that holds back the first patches until `go` is set; it answers later questions at once."""

    def __init__(self, first: int) -> None:
        self._left, self._lock = first, threading.Lock()
        self.all_asked, self.go = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> Reply:
        if question(request) != "patch":
            return Reply(answer(request))
        with self._lock:
            self._left -= 1
            held = self._left >= 0
            if self._left == 0:
                self.all_asked.set()
        return Reply(answer(request), wait=self.go if held else None)


def frozen(*, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    count = QUICK_RUNS if quick else RUNS
    model = Holding(count)
    with new_ground(model) as ground:
        file = ground.folder / "told"
        file.touch()
        late = ground.worker(driver=(str(DRIVERS / "telling_worker.py"), str(file)), at_once=count)
        late.wait_ready()
        runs = asyncio.run(_submitted(ground, count))
        if not model.all_asked.wait(SECONDS):
            raise TimeoutError("not all runs asked the model")
        late.signal(signal.SIGSTOP)
        before = len(file.read_text().splitlines())
        # The answers reach the connections of the stopped worker, which reads them when it wakes.
        model.go.set()
        began = time.monotonic()
        ground.worker(at_once=count).wait_ready()
        results = asyncio.run(asyncio.wait_for(ground.finish(runs), SECONDS))
        took = time.monotonic() - began
        states = _versions(ground)
        late.signal(signal.SIGCONT)
        lines = _quiet(file, before + count)[before:]
        say(f"woken after {took:.0f} s; it tried {len(lines)} writes: {sorted(lines)}")
        found = truth(ground, [run.run_id for run in runs])
        moved = sum(state != other for state, other in zip(states, _versions(ground), strict=True))
        late.end()
    fenced = sum(line.endswith(" fenced") for line in lines)
    return [
        exactly("frozen_ended_by_others", results.count("verified"), count),
        at_least("frozen_late_writes", len(lines), count),
        exactly("frozen_late_writes_not_fenced", len(lines) - fenced, 0),
        exactly("frozen_rows_changed_late", moved, 0),
        exactly("frozen_lost_or_twice", len(found.lost | found.gaps | found.twice), 0),
        told("frozen_takeover_seconds", took),
    ]


async def _submitted(ground: Ground, count: int) -> list[RunState]:
    runs = await ground.begin(tiny_repo(ground.folder / "calc"), count)
    await ground.submit(runs)
    return runs


def _versions(ground: Ground) -> list[tuple[object, ...]]:
    """Return everything that a driver writes: version and fence of each run, and its number of rows of each kind."""
    counted = ", ".join(
        f"(SELECT count(*) FROM {table} WHERE run_id = runs.id)" for table in ("steps", "events", "journal", "cards")
    )
    return ground.rows(f"SELECT id, version, fence, status, md5(state), {counted} FROM runs ORDER BY id")


def _quiet(file: Path, enough: int) -> list[str]:
    """Return the lines once there are enough and no more arrive."""
    ends, lines, since = time.monotonic() + SECONDS, file.read_text().splitlines(), time.monotonic()
    while time.monotonic() < ends:
        now = file.read_text().splitlines()
        if len(now) != len(lines):
            lines, since = now, time.monotonic()
        if time.monotonic() - since > (QUIET if len(lines) >= enough else 3 * QUIET):
            break
        time.sleep(0.1)
    return lines
