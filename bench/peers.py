"""Redstart, aider and mini-swe-agent with one real small model on the 40 programs of QuixBugs, graded by hidden tests.

    python bench/peers.py --url http://127.0.0.1:8080        # asks the model, for hours; continues where it stopped
    python bench/peers.py                                    # grades every stored patch again, and counts

Every task is laid out sealed, as for `redstart eval`: a repo of one commit with a part of its tests. The agents get
the same instructions, the same model with the same answer limit, and four minutes each; a proxy counts the traffic
between them and the model. Our verdict grades the result of each agent with all tests, after restoring the tests that
the agent touched. Each result is a row of `results/peers.jsonl` that includes the patch. `--quick` grades the first two
tasks that all agents have finished.

A result is dishonest if the agent claims success but hidden tests fail. The bench needs git, `REDSTART_DATA` and, until
the agents' environments are in the user's cache, a package index.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from _environments import cache
from _figures import Figure, expect_at_least, print_figures, report_value
from real_peers.agents import AGENTS, Ended, Place
from real_peers.counting import serve_counting_proxy
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.evals.grading import Grader
from redstart.evals.intervals import ALPHA, compute_mcnemar_p, estimate_share, find_detectable_difference
from redstart.evals.sets import load_set
from redstart.evals.task import Task, TaskChange
from redstart.evals.task_repo import apply_change, lay_out, open_site
from tokens_peers.environments import Environments

RESULTS = Path(__file__).parent / "results" / "peers.jsonl"
QUICK = 2
Row = dict[str, Any]


def load_tasks() -> list[Task]:
    folder = os.environ.get("REDSTART_DATA")
    if not folder or not (Path(folder) / "quixbugs_py.jsonl").is_file():
        sys.exit("REDSTART_DATA is not a folder with quixbugs_py.jsonl: see docs/benchmarks.md")
    return load_set("quixbugs", data=Path(folder))


def load_rows() -> list[Row]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def play(house: AppContext, agent: str, task: Task, url: str, environments: Environments) -> Row:
    """Run one agent on one task and return its row."""
    with (
        tempfile.TemporaryDirectory(prefix="redstart-peers-") as name,
        serve_counting_proxy(url) as (proxy_url, counts),
    ):
        folder = Path(name)
        repo = folder / "projects" / task.slug
        lay_out(house.trees, task, repo)
        file = next(path for path in task.fix.paths if path.endswith(".py"))
        result: Ended = AGENTS[agent](Place(folder, repo, file, proxy_url, environments))
        # The chat files that aider writes are not part of its patch.
        subprocess.run(["git", "add", "--all", "--", ".", ":(exclude).aider*"], cwd=repo, check=True)
        diff = subprocess.run(["git", "diff", "--cached", "--binary"], cwd=repo, check=True, capture_output=True)
    return {
        "agent": agent,
        "task": task.id,
        "claims": result.claims,
        "crash": result.crash,
        "seconds": result.seconds,
        "calls": counts.calls,
        "prompt": counts.prompt,
        "answer": counts.answer,
        "patch": diff.stdout.decode(errors="replace"),
    }


async def is_solved(house: AppContext, grader: Grader, task: Task, patch: str) -> bool:
    """Return whether the patch passes the hidden tests. An empty patch needs no run: the original task fails."""
    if not patch:
        return False
    with tempfile.TemporaryDirectory(prefix="redstart-peers-") as name:
        site = open_site(house, task, Path(name) / task.slug)
        snapshot = apply_change(house.trees, site.spec.base, TaskChange(diff=patch), task.id)
        grade = await grader.grade(site, snapshot)
    if grade.trouble:
        sys.exit(f"{task.id} cannot be graded: {grade.trouble}")
    return grade.solved


def go_on(house: AppContext, all_tasks: list[Task], url: str) -> None:
    """Run every agent on each task that has no row yet, task by task, so that partial results are comparable too."""
    finished = {(row["agent"], row["task"]) for row in load_rows()}
    environments = Environments(cache() / "bench-tokens")
    for task in all_tasks:
        for agent in AGENTS:
            if (agent, task.id) not in finished:
                row = play(house, agent, task, url, environments)
                RESULTS.parent.mkdir(exist_ok=True)
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    f"{task.id:<28} {agent:<9} {row['seconds']:>6.0f} s  {'claims' if row['claims'] else ''}",
                    flush=True,
                )


def count(house: AppContext, all_tasks: list[Task], rows: list[Row]) -> list[Figure]:
    """Grade every patch and print the results; the figures cover the tasks that all three agents have finished."""
    by_task: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_task[row["task"]][row["agent"]] = row
    finished = [task for task in all_tasks if len(by_task[task.id]) == len(AGENTS)]
    if not finished:
        sys.exit("no task is finished by all three agents yet: pass --url")
    grader, solved = Grader(house), dict[tuple[str, str], bool]()
    for task in finished:
        for agent in AGENTS:
            solved[agent, task.id] = asyncio.run(is_solved(house, grader, task, by_task[task.id][agent]["patch"]))
    print(f"{len(finished)} tasks finished by all three")
    print(f"{'agent':<10}{'solved':>8}  {'interval':<16}{'dishonest':>10}{'tokens':>10}{'minutes':>9}{'crashes':>9}")
    figures: list[Figure] = []
    for agent in AGENTS:
        agent_rows = [by_task[task.id][agent] for task in finished]
        solved_count = sum(solved[agent, task.id] for task in finished)
        dishonest_count = sum(row["claims"] and not solved[agent, row["task"]] for row in agent_rows)
        tokens, minutes = (
            sum(row["prompt"] + row["answer"] for row in agent_rows),
            sum(row["seconds"] for row in agent_rows) / 60,
        )
        crashes = sum(bool(row["crash"]) for row in agent_rows)
        share = estimate_share(solved_count, len(finished))
        interval = f"{share.low:.2f} to {share.high:.2f}"
        print(
            f"{agent:<10}{solved_count:>8}  {interval:<16}{dishonest_count:>10}{tokens:>10}{minutes:>9.0f}{crashes:>9}"
        )
        figures += [report_value(f"{agent}_solved", solved_count), report_value(f"{agent}_dishonest", dishonest_count)]
    return [*figures, *_compare_agents(finished, solved), report_value("tasks", len(finished))]


def _compare_agents(finished: list[Task], solved: dict[tuple[str, str], bool]) -> list[Figure]:
    """Compare Redstart with each of the other agents, in pairs."""
    figures: list[Figure] = []
    for other in [agent for agent in AGENTS if agent != "redstart"]:
        redstart_only = sum(solved["redstart", task.id] and not solved[other, task.id] for task in finished)
        other_only = sum(solved[other, task.id] and not solved["redstart", task.id] for task in finished)
        can = find_detectable_difference(len(finished), (redstart_only + other_only) / len(finished))
        sensitivity = "nothing" if can is None else f"differences of {100 * can:.0f} points or more"
        summary = (
            f"p = {compute_mcnemar_p(other_only, redstart_only):.3f}; {len(finished)} tasks show "
            f"{sensitivity} at {ALPHA:g}"
        )
        print(f"redstart and {other}: {redstart_only} only by redstart, {other_only} only by {other}; {summary}")
        for task in finished:
            if solved[other, task.id] and not solved["redstart", task.id]:
                print(f"  only {other}: {task.id}")
        figures.append(expect_at_least(f"ahead_of_{other}", redstart_only - other_only, 1))
    return figures


def _create_settings(folder: Path) -> Settings:
    return Settings(home=folder / "home")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a model with a chat completions endpoint; without it no model is asked")
    parser.add_argument("--first", type=int, default=None, help="only this many tasks")
    parser.add_argument("--quick", action="store_true", help="grade only the first tasks")
    args = parser.parse_args()
    all_tasks = load_tasks()[: args.first]
    with (
        tempfile.TemporaryDirectory(prefix="redstart-peers-") as name,
        open_app(_create_settings(Path(name))) as base_app,
    ):
        app = base_app.with_sandbox()
        if args.url:
            go_on(app, all_tasks, args.url.rstrip("/"))
        rows = load_rows()
        if args.quick:
            counts = Counter(row["task"] for row in rows)
            all_tasks = [task for task in all_tasks if counts[task.id] == len(AGENTS)][:QUICK]
        figures = count(app, all_tasks, rows)
    return 0 if print_figures("peers", figures) else 1


if __name__ == "__main__":
    sys.exit(main())
