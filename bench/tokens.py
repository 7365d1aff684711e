"""Tokens to a fix: Redstart beside aider and mini-swe-agent on the same 20 small tasks.

All three talk to a scripted server on loopback, over chat completions. The script gives each of them the right edit
under the same condition, in its own protocol, with as few turns as possible (`tokens_peers/agents.py`). So they differ
only in the code around the model: what each sends, and how often it asks. One tokenizer, cl100k_base, counts prompts
and answers. aider receives the files to edit and the output of the tests, and makes no map of the repo; mini reads the
right files at once; Redstart gets only the folder. A task is solved if its tests pass afterwards and no test changed.

It needs git and, until the peers' environments are in the user's cache, a package index. `--quick` takes three tasks.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import _paths  # noqa: F401
from _environments import cache
from _figures import Figure, expect_equal, print_figures, report_value
from support.scenarios import Scenario
from tokens_peers.agents import AGENTS, Exchange, Place
from tokens_peers.environments import WANTED, Environments
from tokens_peers.tasks import Task, load_tasks

QUICK = ("contact_cards", "tag_index", "pager")
AT_ONCE = 2


class Talk(NamedTuple):
    """The result of one agent on one task, and its exchanges with the model."""

    agent: str
    task: str
    solved: bool
    exchanges: list[Exchange]


class Row(NamedTuple):
    solved: bool
    calls: int
    prompt: int
    answer: int

    @property
    def tokens(self) -> int:
        return self.prompt + self.answer


def play(agent: str, task: Task, directory: Path, environments: Environments) -> Talk:
    place = Place(directory, directory / "projects" / task.scenario.name, environments)
    place.repo.parent.mkdir(parents=True)
    task.lay_out(place.repo)
    exchanges = AGENTS[agent](task.scenario, place)
    return Talk(agent, task.scenario.name, is_solved(task.scenario, place), exchanges)


def is_solved(scenario: Scenario, place: Place) -> bool:
    """Return whether the task is solved, checked outside of any agent."""
    changed = subprocess.run(["git", "diff", "--name-only"], cwd=place.repo, capture_output=True, text=True, check=True)
    python = str(place.environments.get_python("project"))
    options = ["-q", "-p", "no:cacheprovider"] if scenario.runner == "pytest" else ["discover"]
    environ = place.build_environ("project")
    completed = subprocess.run(
        [python, "-m", scenario.runner, *options], cwd=place.repo, env=environ, capture_output=True
    )
    return completed.returncode == 0 and set(changed.stdout.split()) <= set(scenario.files)


def play_all(selected: Sequence[Task], environments: Environments) -> list[Talk]:
    for name in WANTED:
        environments.get_python(name)
    with tempfile.TemporaryDirectory(prefix="redstart-tokens-") as name, ThreadPoolExecutor(AT_ONCE) as pool:
        root = Path(name).resolve()
        pairs = [(agent, task) for task in selected for agent in AGENTS]
        folders = [root / agent / task.scenario.name for agent, task in pairs]
        return list(pool.map(lambda pair, folder: play(*pair, folder, environments), pairs, folders))


def count_tokens(talks: Sequence[Talk], environments: Environments) -> dict[tuple[str, str], Row]:
    """Count the tokens by agent and task."""
    texts = [text for talk in talks for exchange in talk.exchanges for text in exchange]
    counts = iter(environments.count(texts))
    rows: dict[tuple[str, str], Row] = {}
    for talk in talks:
        pairs = [(next(counts), next(counts)) for _ in talk.exchanges]
        prompt, answer = (sum(column) for column in zip(*pairs, strict=True)) if pairs else (0, 0)
        rows[talk.agent, talk.task] = Row(talk.solved, len(pairs), prompt, answer)
    return rows


def format_table(rows: dict[tuple[str, str], Row], names: Sequence[str]) -> str:
    lines = ["| task | " + " | ".join(f"{agent}: calls, prompt + answer" for agent in AGENTS) + " |"]
    lines.append("|---|" + "---|" * len(AGENTS))
    for name in names:
        cells = [rows[agent, name] for agent in AGENTS]
        formatted = [
            f"{row.calls}, {row.prompt:,} + {row.answer:,}{'' if row.solved else ' (not solved)'}" for row in cells
        ]
        lines.append(f"| {name} | {' | '.join(formatted)} |")
    sums = [[rows[agent, name] for name in names] for agent in AGENTS]
    formatted = [
        f"{sum(row.calls for row in agent_rows)}, {sum(row.prompt for row in agent_rows):,} + "
        f"{sum(row.answer for row in agent_rows):,}"
        for agent_rows in sums
    ]
    return "\n".join([*lines, f"| all | {' | '.join(formatted)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three tasks")
    args = parser.parse_args()
    selected = [task for task in load_tasks() if not args.quick or task.scenario.name in QUICK]
    environments = Environments(cache() / "bench-tokens")
    rows = count_tokens(play_all(selected, environments), environments)
    names = [task.scenario.name for task in selected]
    print(format_table(rows, names))
    figures: list[Figure] = []
    for agent in AGENTS:
        agent_rows = [rows[agent, name] for name in names]
        figures.append(report_value(f"{agent}_tokens", sum(row.tokens for row in agent_rows)))
        figures.append(expect_equal(f"solved_{agent}", sum(row.solved for row in agent_rows), len(names)))
    print_figures("tokens", figures)


if __name__ == "__main__":
    main()
