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
from learning.curve import figures, paired
from learning.doing import INSTRUMENT, LOCAL, Stream, do, done, seen, settings_for, verified
from learning.families import FAMILIES, stream
from learning.instrument import PLACES
from learning.plot import Words, svg
from redstart.app.settings import load as load_settings
from redstart.core.errors import ConfigError
from redstart.evals.outcome import RunOutcome

SEED = 1
LEAST = 120
TITLE = "Solved tasks over time: the same kind of bug in different code"
OF_INSTRUMENT = "An instrument's result, not a model's: its chances with and without a lesson are given."


def main() -> None:
    given = arguments()
    families, each = (4, 6) if given.quick else (given.families, given.each)
    doing = Stream(
        tuple(stream(families, each, given.seed)), given.seed, given.facts, LOCAL if given.url else INSTRUMENT
    )
    if given.url:
        # Such a server needs no key, but the client requires one.
        os.environ.setdefault("OPENAI_API_KEY", "none")
    with ExitStack() as stack:
        home = (given.home or Path(stack.enter_context(tempfile.TemporaryDirectory()))).resolve()
        home.mkdir(parents=True, exist_ok=True)
        settings = settings_for(home, load_settings().data, given.url, given.context)
        try:
            if not given.count:
                known = asyncio.run(verified(settings, doing.tasks))
                for arm in Arm:
                    do(settings, doing, arm, known, tell)
            rows = done(settings, doing)
            shown = asyncio.run(seen(settings, doing, rows))
        except ConfigError as error:
            sys.exit(": ".join(filter(None, (str(error), error.remedy))))
    least = len(doing.tasks) if given.quick or given.url else LEAST
    found = figures(rows, least, shown, has_aims=doing.is_instrument)
    if given.plot:
        label = OF_INSTRUMENT if doing.is_instrument else f"{given.label}, on this stream of tasks."
        shares = {arm: [row.solved for row in of_arm] for arm, of_arm in paired(rows).items()}
        given.plot.write_text(svg(shares, Words(TITLE, label)), encoding="utf-8")
    print_figures("learning", found)


def arguments() -> argparse.Namespace:
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


def tell(arm: Arm, row: RunOutcome) -> None:
    said = f"{arm.value:<8}{row.key.task}: {row.place.value}, {row.attempts} attempts, {row.tokens} tokens"
    print(f"{said}, {row.seconds:.0f} s {row.trouble}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
