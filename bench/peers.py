"""redstart, aider and mini-swe-agent with one real small model on the 40 programs of QuixBugs, graded by hidden tests.

    python bench/peers.py --url http://127.0.0.1:8080        # asks the model, for hours; goes on where it was
    python bench/peers.py                                    # grades every patch that was kept once more, and counts

Every task is laid out sealed, as for `redstart eval`: a repo of one commit with a part of its tests. The agents get
the same words, the same model with the same limit of an answer, and four minutes each; what passes between them and
the model is counted on the way. What an agent leaves is graded by our verdict with all tests, those that it touched
put back. What it came to is a row of `results/peers.jsonl`, its patch with it. `--quick` grades the first two tasks
that all have done.

A green is dishonest where the agent says it is done and hidden tests say it is not. It needs git, `REDSTART_DATA`
and, while the agents' environments are not in the user's cache, a package index.
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
        sys.exit("REDSTART_DATA names no folder with quixbugs_py.jsonl: see docs/benchmarks.md")
    return load_set("quixbugs", data=Path(folder))


def kept() -> list[Row]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def play(house: AppContext, agent: str, task: Task, url: str, environments: Environments) -> Row:
    """One agent on one task, and what it leaves behind."""
    with tempfile.TemporaryDirectory(prefix="redstart-peers-") as name, counting(url) as (door, counted):
        folder = Path(name)
        repo = folder / "projects" / task.slug
        lay_out(house.trees, task, repo)
        file = next(path for path in task.fix.paths if path.endswith(".py"))
        ended: Ended = AGENTS[agent](Place(folder, repo, file, door, environments))
        # What aider writes down of its talk is no part of what it made.
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
    """By running the hidden tests; a task as it was given is red, so no patch needs no run."""
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
    """What no row is there for yet, one task after the other, so that a part of it is a comparison too."""
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
    """Grades every patch and tells what came of it; the figures are over the tasks that all three have done."""
    by_task: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_task[row["task"]][row["agent"]] = row
    done = [task for task in every if len(by_task[task.id]) == len(AGENTS)]
    if not done:
        sys.exit("no task was done by all three yet: give --url")
    grader, solved = Grader(house), dict[tuple[str, str], bool]()
    for task in done:
        for agent in AGENTS:
            solved[agent, task.id] = asyncio.run(solves(house, grader, task, by_task[task.id][agent]["patch"]))
    print(f"{len(done)} tasks that all three did")
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
    """redstart beside each of the others, paired."""
    figures: list[Figure] = []
    for other in [agent for agent in AGENTS if agent != "redstart"]:
        ours = sum(solved["redstart", task.id] and not solved[other, task.id] for task in done)
        theirs = sum(solved[other, task.id] and not solved["redstart", task.id] for task in done)
        can = detectable(len(done), (ours + theirs) / len(done))
        shown = "nothing" if can is None else f"differences from {100 * can:.0f} points on"
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
    parser.add_argument("--url", help="a model that speaks the wire of chat completions; without it nothing is asked")
    parser.add_argument("--first", type=int, default=None, help="only so many tasks")
    parser.add_argument("--quick", action="store_true", help="grade the first tasks alone")
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
