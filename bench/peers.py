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
from _figures import Figure, at_least, print_figures, told
from real_peers.agents import AGENTS, Ended, Place
from real_peers.counting import counting
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_house
from redstart.evals.grading import Grader
from redstart.evals.intervals import ALPHA, detectable, mcnemar, wilson
from redstart.evals.sealed import changed, lay_out, open_site
from redstart.evals.sets import load_set
from redstart.evals.task import Task, TaskChange
from tokens_peers.environments import Environments

RESULTS = Path(__file__).parent / "results" / "peers.jsonl"
QUICK = 2
Row = dict[str, Any]


def tasks() -> list[Task]:
    folder = os.environ.get("REDSTART_DATA")
    if not folder or not (Path(folder) / "quixbugs_py.jsonl").is_file():
        sys.exit("REDSTART_DATA is not a folder with quixbugs_py.jsonl: see docs/benchmarks.md")
    return load_set("quixbugs", data=Path(folder))


def kept() -> list[Row]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def play(house: AppContext, agent: str, task: Task, url: str, environments: Environments) -> Row:
    """Run one agent on one task and return its row."""
    with tempfile.TemporaryDirectory(prefix="redstart-peers-") as name, counting(url) as (door, counted):
        folder = Path(name)
        repo = folder / "projects" / task.slug
        lay_out(house.trees, task, repo)
        file = next(path for path in task.fix.paths if path.endswith(".py"))
        ended: Ended = AGENTS[agent](Place(folder, repo, file, door, environments))
        # The chat files that aider writes are not part of its patch.
        subprocess.run(["git", "add", "--all", "--", ".", ":(exclude).aider*"], cwd=repo, check=True)
        diff = subprocess.run(["git", "diff", "--cached", "--binary"], cwd=repo, check=True, capture_output=True)
    return {
        "agent": agent,
        "task": task.id,
        "claims": ended.claims,
        "crash": ended.crash,
        "seconds": ended.seconds,
        "calls": counted.calls,
        "prompt": counted.prompt,
        "answer": counted.answer,
        "patch": diff.stdout.decode(errors="replace"),
    }


async def solves(house: AppContext, grader: Grader, task: Task, patch: str) -> bool:
    """Return whether the patch passes the hidden tests. An empty patch needs no run: the original task fails."""
    if not patch:
        return False
    with tempfile.TemporaryDirectory(prefix="redstart-peers-") as name:
        site = open_site(house, task, Path(name) / task.slug)
        made = changed(house.trees, site.spec.base, TaskChange(diff=patch), task.id)
        grade = await grader.grade(site, made)
    if grade.trouble:
        sys.exit(f"{task.id} cannot be graded: {grade.trouble}")
    return grade.solved


def go_on(house: AppContext, every: list[Task], url: str) -> None:
    """Run every agent on each task that has no row yet, task by task, so that partial results are comparable too."""
    done = {(row["agent"], row["task"]) for row in kept()}
    environments = Environments(cache() / "bench-tokens")
    for task in every:
        for agent in AGENTS:
            if (agent, task.id) not in done:
                row = play(house, agent, task, url, environments)
                RESULTS.parent.mkdir(exist_ok=True)
                with RESULTS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    f"{task.id:<28} {agent:<9} {row['seconds']:>6.0f} s  {'claims' if row['claims'] else ''}",
                    flush=True,
                )


def count(house: AppContext, every: list[Task], rows: list[Row]) -> list[Figure]:
    """Grade every patch and print the results; the figures cover the tasks that all three agents have finished."""
    by_task: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_task[row["task"]][row["agent"]] = row
    done = [task for task in every if len(by_task[task.id]) == len(AGENTS)]
    if not done:
        sys.exit("no task is finished by all three agents yet: pass --url")
    grader, solved = Grader(house), dict[tuple[str, str], bool]()
    for task in done:
        for agent in AGENTS:
            solved[agent, task.id] = asyncio.run(solves(house, grader, task, by_task[task.id][agent]["patch"]))
    print(f"{len(done)} tasks finished by all three")
    print(f"{'agent':<10}{'solved':>8}  {'interval':<16}{'dishonest':>10}{'tokens':>10}{'minutes':>9}{'crashes':>9}")
    figures: list[Figure] = []
    for agent in AGENTS:
        mine = [by_task[task.id][agent] for task in done]
        right = sum(solved[agent, task.id] for task in done)
        dishonest = sum(row["claims"] and not solved[agent, row["task"]] for row in mine)
        tokens, minutes = sum(row["prompt"] + row["answer"] for row in mine), sum(row["seconds"] for row in mine) / 60
        crashes = sum(bool(row["crash"]) for row in mine)
        share = wilson(right, len(done))
        interval = f"{share.low:.2f} to {share.high:.2f}"
        print(f"{agent:<10}{right:>8}  {interval:<16}{dishonest:>10}{tokens:>10}{minutes:>9.0f}{crashes:>9}")
        figures += [told(f"{agent}_solved", right), told(f"{agent}_dishonest", dishonest)]
    return [*figures, *_beside(done, solved), told("tasks", len(done))]


def _beside(done: list[Task], solved: dict[tuple[str, str], bool]) -> list[Figure]:
    """Compare Redstart with each of the other agents, in pairs."""
    figures: list[Figure] = []
    for other in [agent for agent in AGENTS if agent != "redstart"]:
        ours = sum(solved["redstart", task.id] and not solved[other, task.id] for task in done)
        theirs = sum(solved[other, task.id] and not solved["redstart", task.id] for task in done)
        can = detectable(len(done), (ours + theirs) / len(done))
        shown = "nothing" if can is None else f"differences of {100 * can:.0f} points or more"
        told_words = f"p = {mcnemar(theirs, ours):.3f}; {len(done)} tasks show {shown} at {ALPHA:g}"
        print(f"redstart and {other}: {ours} only by redstart, {theirs} only by {other}; {told_words}")
        for task in done:
            if solved[other, task.id] and not solved["redstart", task.id]:
                print(f"  only {other}: {task.id}")
        figures.append(at_least(f"ahead_of_{other}", ours - theirs, 1))
    return figures


def _settings(folder: Path) -> Settings:
    return Settings(home=folder / "home")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a model with a chat completions endpoint; without it no model is asked")
    parser.add_argument("--first", type=int, default=None, help="only this many tasks")
    parser.add_argument("--quick", action="store_true", help="grade only the first tasks")
    given = parser.parse_args()
    every = tasks()[: given.first]
    with tempfile.TemporaryDirectory(prefix="redstart-peers-") as name, open_house(_settings(Path(name))) as opened:
        house = opened.with_sandbox()
        if given.url:
            go_on(house, every, given.url.rstrip("/"))
        rows = kept()
        if given.quick:
            counts = Counter(row["task"] for row in rows)
            every = [task for task in every if counts[task.id] == len(AGENTS)][:QUICK]
        figures = count(house, every, rows)
    return 0 if print_figures("peers", figures) else 1


if __name__ == "__main__":
    sys.exit(main())
