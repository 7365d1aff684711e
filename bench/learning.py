"""Do later runs benefit from what earlier runs learned? The learning curve with memory off, on, and as a placebo.

    python bench/learning.py --home FOLDER --plot docs/learning-curve.svg      # 120 tasks, three times over
    python bench/learning.py --home FOLDER --url http://127.0.0.1:8080 --families 4 --each 5       # a real model

There are 12 families of 10 tasks: the same kind of bug in different code (`learning/families/`), written for this
bench, each task a repo of its own with shown and hidden tests. The tasks run one after the other in a random order that
is the same in all arms, as `redstart eval` runs them, with the real sandbox and the SQLite store; each run has three
attempts. Lessons are stored as in everyday use, coins included, except that the bench stands in for the person who
approves each lesson for the tenant: without approval, no lesson leaves its repo. The placebo gives, run by run, as many
lessons and cards of the same length as `on` gave, about something else (see `learning/arms.py`).

Without `--url` no model is asked: an instrument that knows the true fix gives it in an attempt with a chance of 0.9 if
its question holds the family's key fact, and otherwise with a chance of 0.25. When a fix is verified, the instrument
teaches that fact. So the figures say what lessons carry from run to run, and nothing about any model. The random number
that decides an attempt is the same in all arms. With `--facts cards` the instrument leaves the fact on the fix card
instead, and teaches no lesson.

`--home FOLDER` keeps everything, and the same command continues there after a stop; `--count` only counts the rows
there. `--quick` takes 4 families of 6 tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import _paths  # noqa: F401
from _figures import print_figures
from learning.arms import Arm
from learning.curve import build_figures, pair_rows
from learning.doing import INSTRUMENT, LOCAL, Stream, create_settings, do, load_contexts, load_rows, verify_tasks
from learning.families import FAMILIES, stream
from learning.instrument import PLACES
from learning.plot import Words, render_svg
from redstart.app.settings import load as load_settings
from redstart.core.errors import ConfigError
from redstart.evals.outcome import RunOutcome

SEED = 1
LEAST = 120
TITLE = "Solved tasks over time: the same kind of bug in different code"
OF_INSTRUMENT = "An instrument's result, not a model's: its chances with and without a lesson are given."


def main() -> None:
    args = parse_arguments()
    families, tasks_per_family = (4, 6) if args.quick else (args.families, args.each)
    doing = Stream(
        tuple(stream(families, tasks_per_family, args.seed)), args.seed, args.facts, LOCAL if args.url else INSTRUMENT
    )
    if args.url:
        # Such a server needs no key, but the client requires one.
        os.environ.setdefault("OPENAI_API_KEY", "none")
    with ExitStack() as stack:
        home = (args.home or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        home.mkdir(parents=True, exist_ok=True)
        settings = create_settings(home, load_settings().data, args.url, args.context)
        try:
            if not args.count:
                baselines = asyncio.run(verify_tasks(settings, doing.tasks))
                for arm in Arm:
                    do(settings, doing, arm, baselines, print_outcome)
            rows = load_rows(settings, doing)
            shown_counts = asyncio.run(load_contexts(settings, doing, rows))
        except ConfigError as error:
            sys.exit(": ".join(filter(None, (str(error), error.remedy))))
    minimum = len(doing.tasks) if args.quick or args.url else LEAST
    learning_figures = build_figures(rows, minimum, shown_counts, has_aims=doing.is_instrument)
    if args.plot:
        label = OF_INSTRUMENT if doing.is_instrument else f"{args.label}, on this stream of tasks."
        shares = {arm: [row.solved for row in arm_rows] for arm, arm_rows in pair_rows(rows).items()}
        args.plot.write_text(render_svg(shares, Words(TITLE, label)), encoding="utf-8")
    print_figures("learning", learning_figures)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--home", type=Path, help="folder that keeps everything, to continue later")
    parser.add_argument("--families", type=int, default=len(FAMILIES), help="how many kinds of bug")
    parser.add_argument("--each", type=int, default=10, help="tasks of each kind, at most 10")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the order, the coins and the instrument")
    parser.add_argument(
        "--facts", choices=PLACES, default=PLACES[0], help="where the instrument leaves what it learned"
    )
    parser.add_argument("--url", default="", help="a model with a chat completions endpoint, without /v1")
    parser.add_argument("--context", type=int, default=4096, help="size of that model's context window in tokens")
    parser.add_argument("--label", default="A small local model", help="name of the model on its plot")
    parser.add_argument("--plot", type=Path, help="a file for the curve as SVG")
    parser.add_argument("--count", action="store_true", help="start no run, and count those of --home")
    return parser.parse_args()


def print_outcome(arm: Arm, row: RunOutcome) -> None:
    message = f"{arm.value:<8}{row.key.task}: {row.place.value}, {row.attempts} attempts, {row.tokens} tokens"
    print(f"{message}, {row.seconds:.0f} s {row.trouble}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
