"""One tenant fills the queue: how much longer does another tenant wait than on an idle fleet?"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence

from _figures import Figure, at_most, exactly, told
from drills.ground import Ground, new_ground, tiny_repo
from redstart.core.run import RunState
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.orders import order_of

QUEUED, QUICK_QUEUED = 500, 60
FEW, QUICK_FEW = 10, 6
WORKERS, AT_ONCE = 2, 2
AIM = 3.0


def fairness(*, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    queued, few = (QUICK_QUEUED, QUICK_FEW) if quick else (QUEUED, FEW)

    async def measured() -> list[Figure]:
        with new_ground(fair=True) as ground:
            repo = tiny_repo(ground.folder / "calc")
            for _ in range(WORKERS):
                ground.worker(at_once=AT_ONCE).wait_ready()
            fleet = await ground.fleet()
            # A warm-up, so that every worker has loaded everything that its first run loads.
            await _took(fleet, await ground.begin(repo, 2 * WORKERS * AT_ONCE, "first"))
            idle = await _took(fleet, await ground.begin(repo, few, "idle"))
            say(f"on an idle fleet: {_shown(idle)}")
            many = await ground.begin(repo, queued, "large")
            await ground.submit(many)
            ended = _ended(ground)
            busy = await _took(fleet, await ground.begin(repo, few, "small"))
            meanwhile = _ended(ground) - ended
            say(f"behind {queued} runs of another tenant: {_shown(busy)}; {meanwhile} of those runs ended meanwhile")
            waiting = queued - _ended(ground)
            return [
                at_most("fairness_ratio", statistics.median(busy) / statistics.median(idle), AIM),
                exactly("fairness_queue_was_empty", float(waiting == 0), 0),
                told("fairness_idle_seconds", statistics.median(idle)),
                told("fairness_behind_seconds", statistics.median(busy)),
                told("fairness_still_queued", waiting),
            ]

    return asyncio.run(measured())


async def _took(fleet: FleetClient, runs: Sequence[RunState]) -> list[float]:
    """Submit all runs at once; return the seconds of each from its submission to the end of its supervisor."""

    async def one(run: RunState) -> float:
        began = time.monotonic()
        await fleet.submit(run)
        report = await fleet.ended(order_of(run))
        assert report.result == "verified", report
        return time.monotonic() - began

    return await asyncio.gather(*(one(run) for run in runs))


def _ended(ground: Ground) -> int:
    return ground.rows("SELECT count(*) FROM runs WHERE status = 'finished'", "large")[0][0]


def _shown(seconds: Sequence[float]) -> str:
    return f"{len(seconds)} runs, median {statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s"
