"""Paired tests of the rules for small models, on tasks that are not those of `quixbugs.py` and `peers.py`.

    python bench/small_models.py --url http://127.0.0.1:8080 --home DIR    # plays the tasks; continues after a stop
    python bench/small_models.py --url ... --rule omits_documentation --attempts 1 --first 24
    python bench/small_models.py                                           # counts

A rule is a field of `QuestionOptions`. Each task of `humanevalfix_py` (`REDSTART_DATA`, see docs/benchmarks.md) is
played with the rule and without it, one after the other, by one model with brief questions, and graded by hidden tests.
Each run is a row of `results/small_models.jsonl`. The rule stands if it loses no more tasks than it wins and uses fewer
answer tokens, or if it wins significantly more. DIR keeps the runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from _environments import make_plain_environment
from _figures import Figure, expect_at_most, print_figures, report_value
from redstart.app.settings import Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.core.change import EditKind
from redstart.core.run import Limits
from redstart.core.run_preferences import QuestionOptions
from redstart.evals import runner
from redstart.evals.app import EvaluationRequest, build_plan, open_evaluation, open_lab
from redstart.evals.intervals import compute_mcnemar_p
from redstart.evals.outcome import RunOutcome
from redstart.evals.sets import load_set
from redstart.evals.task import Task
from redstart.ports.model.port import Profile

RESULTS = Path(__file__).parent / "results" / "small_models.jsonl"
SET = "humanevalfix_py"
MODEL = "openai:local"
RULES = ("omits_documentation", "ends_unchanged")
ATTEMPTS = 5
MINUTES = 30
SIDES = (True, False)
Row = dict[str, Any]


def create_settings(home: Path, url: str) -> Settings:
    options = ModelOptions(max_tokens=500, deadline=1800)
    profile = Profile(context=4096, looks=0, brief=True, edits=EditKind.whole)
    models = Models(
        strong=MODEL,
        fast=MODEL,
        base_url=f"{url}/v1",
        patience=3600,
        options={MODEL: options},
        profiles={MODEL: profile},
    )
    return Settings(home=home, data=load_data_folder(), models=models)


def load_data_folder() -> Path:
    folder = os.environ.get("REDSTART_DATA")
    if not folder:
        sys.exit("REDSTART_DATA is not set: see docs/benchmarks.md")
    return Path(folder)


def play(settings: Settings, task: Task, rule: str, attempts: int, *, applies: bool) -> Row:
    """Play one task with the rule or without it."""
    choose = runner.choose_question_options

    def choose_with_rule(*arguments: Any) -> QuestionOptions:
        return choose(*arguments).model_copy(update={rule: applies})

    name = f"{rule}-{attempts}-{'on' if applies else 'off'}-{task.slug}"
    plan = build_plan(
        EvaluationRequest(SET, name=name, limits=Limits(attempts=attempts, minutes=MINUTES)), [task], MODEL
    )
    rows: list[RunOutcome] = []
    with (
        patch.object(runner, "choose_question_options", choose_with_rule),
        open_lab(settings, plan.name) as lab,
    ):
        work = open_evaluation(lab.app.with_sandbox(), lab.trials, plan, [task], rows.append)
        asyncio.run(work.go(1))
        (row,) = rows or work.results.list_rows()
    kept = ("result", "solved", "claimed", "attempts", "calls", "input_tokens", "output_tokens", "seconds", "trouble")
    return {
        "rule": rule,
        "of": attempts,
        "applies": applies,
        "task": task.id,
        **row.model_dump(include=set(kept), mode="json"),
    }


def load_rows() -> list[Row]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def play_all(settings: Settings, tasks: Sequence[Task], rule: str, attempts: int) -> None:
    played = {(row["rule"], row["of"], row["applies"], row["task"]) for row in load_rows()}
    RESULTS.parent.mkdir(exist_ok=True)
    for task in tasks:
        for applies in SIDES:
            if (rule, attempts, applies, task.id) in played:
                continue
            row = play(settings, task, rule, attempts, applies=applies)
            with RESULTS.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(rule, "on" if applies else "off", task.id, row["result"], row["attempts"], row["trouble"], flush=True)


def count(rows: Sequence[Row]) -> Iterator[Figure]:
    pairs: dict[tuple[str, int, str], dict[bool, Row]] = defaultdict(dict)
    for row in rows:
        pairs[row["rule"], row["of"], row["task"]][row["applies"]] = row
    for rule in RULES:
        complete = [pair for (name, *_), pair in pairs.items() if name == rule and len(pair) == len(SIDES)]
        yield report_value(f"{rule}_tasks", len(complete))
        if not complete:
            continue
        won = sum(pair[True]["solved"] and not pair[False]["solved"] for pair in complete)
        lost = sum(pair[False]["solved"] and not pair[True]["solved"] for pair in complete)
        on, off = (sum(pair[side]["output_tokens"] for pair in complete) for side in SIDES)
        yield report_value(f"{rule}_solved_on", sum(pair[True]["solved"] for pair in complete))
        yield report_value(f"{rule}_solved_off", sum(pair[False]["solved"] for pair in complete))
        yield expect_at_most(f"{rule}_lost_minus_won", lost - won, 0)
        yield report_value(f"{rule}_p", compute_mcnemar_p(won, lost))
        yield expect_at_most(f"{rule}_answer_tokens_ratio", on / off if off else 1.0, 1.0)
        yield expect_at_most(
            f"{rule}_dishonest",
            sum(row["claimed"] and not row["solved"] for pair in complete for row in pair.values()),
            0,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an OpenAI-compatible endpoint, without /v1; without it only counts")
    parser.add_argument("--home", type=Path, help="folder of the runs; with --url")
    parser.add_argument("--rule", choices=RULES, default=RULES[0])
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="the most attempts of a run")
    parser.add_argument("--first", type=int, help="only this many tasks")
    parser.add_argument("--quick", action="store_true", help="the same as without: counting takes no time")
    args = parser.parse_args()
    if args.url:
        tasks = load_set(SET, data=load_data_folder())[: args.first]
        with tempfile.TemporaryDirectory(prefix="redstart-small-models-") as folder:
            os.environ.setdefault("OPENAI_API_KEY", "none")
            os.environ["VIRTUAL_ENV"] = str(make_plain_environment(Path(folder)))
            play_all(create_settings(args.home or Path(folder) / "home", args.url), tasks, args.rule, args.attempts)
    return 0 if print_figures("small_models", list(count(load_rows()))) else 1


if __name__ == "__main__":
    sys.exit(main())
