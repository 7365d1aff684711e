"""One tenant fills the queue: how much longer does another tenant wait than on an idle fleet?"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence

from _figures import Figure, expect_at_most, expect_equal, report_value
from drills.ground import Ground, create_tiny_repo, open_cluster
from redstart.core.run import RunState
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.orders import create_order

QUEUED, QUICK_QUEUED = 500, 60
FEW, QUICK_FEW = 10, 6
WORKERS, AT_ONCE = 2, 2
AIM = 3.0


def measure_fairness(*, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    queued_count, small_count = (QUICK_QUEUED, QUICK_FEW) if quick else (QUEUED, FEW)

    async def run_drill() -> list[Figure]:
        with open_cluster(fair=True) as cluster:
            repo = create_tiny_repo(cluster.folder / "calc")
            for _ in range(WORKERS):
                cluster.start_worker(at_once=AT_ONCE).wait_ready()
            fleet = await cluster.connect_fleet()
            # A warm-up, so that every worker has loaded everything that its first run loads.
            await _measure_runs(fleet, await cluster.store_runs(repo, 2 * WORKERS * AT_ONCE, "first"))
            idle = await _measure_runs(fleet, await cluster.store_runs(repo, small_count, "idle"))
            say(f"on an idle fleet: {_format_times(idle)}")
            large_runs = await cluster.store_runs(repo, queued_count, "large")
            await cluster.submit(large_runs)
            ended_before = _count_ended(cluster)
            busy = await _measure_runs(fleet, await cluster.store_runs(repo, small_count, "small"))
            meanwhile = _count_ended(cluster) - ended_before
            say(
                f"behind {queued_count} runs of another tenant: {_format_times(busy)}; "
                f"{meanwhile} of those runs ended meanwhile"
            )
            waiting = queued_count - _count_ended(cluster)
            return [
                expect_at_most("fairness_ratio", statistics.median(busy) / statistics.median(idle), AIM),
                expect_equal("fairness_queue_was_empty", float(waiting == 0), 0),
                report_value("fairness_idle_seconds", statistics.median(idle)),
                report_value("fairness_behind_seconds", statistics.median(busy)),
                report_value("fairness_still_queued", waiting),
            ]

    return asyncio.run(run_drill())


async def _measure_runs(fleet: FleetClient, runs: Sequence[RunState]) -> list[float]:
    """Submit all runs at once; return the seconds of each from its submission to the end of its supervisor."""

    async def measure_run(run: RunState) -> float:
        began = time.monotonic()
        await fleet.submit(run)
        report = await fleet.wait_for_end(create_order(run))
        assert report.result == "verified", report
        return time.monotonic() - began

    return await asyncio.gather(*(measure_run(run) for run in runs))


def _count_ended(ground: Ground) -> int:
    return ground.query_rows("SELECT count(*) FROM runs WHERE status = 'finished'", "large")[0][0]


def _format_times(seconds: Sequence[float]) -> str:
    return f"{len(seconds)} runs, median {statistics.median(seconds):.1f} s, longest {max(seconds):.1f} s"
