"""What happens to runs when machines die: drills on a fleet that starts here, on loopback, and stops afterwards.

    python bench/chaos.py [--quick] [--seed N] [--runs N] [--drill NAME]...

`kills`: the drill kills the worker with SIGKILL before, during and after each of the eleven steps of a run, and another
worker continues. `storm`: runs are queued for four workers; one worker is killed every five seconds, Postgres restarts
every 20 to 40 seconds, Temporal twice. `frozen`: a worker is stopped until the others consider it dead, then woken.
`fairness`: one tenant queues many runs, then another tenant queues a few. `privilege`: two pools serve runs; the drill
looks for a key where it must not be, and for processes where there must be none.

The repos are tiny and the model is scripted; git, the sandbox, pytest, both servers and the workers are real. The seed
fixes which worker is killed and when servers restart; the effect depends on the machine. The exit code is 1 if an aim
is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import _paths  # noqa: F401
from _figures import Figure, print_figures
from drills.fairness import measure_fairness
from drills.frozen import measure_frozen_worker
from drills.kills import measure_kills
from drills.privilege import measure_privilege
from drills.storm import measure_storm

RUNS, QUICK_RUNS = 1000, 12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a short form of each drill, a few minutes in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=None, help=f"queued runs of the storm ({RUNS}, quick {QUICK_RUNS})")
    names = ("kills", "storm", "frozen", "fairness", "privilege")
    parser.add_argument("--drill", choices=names, action="append", help="run only this drill; may be repeated")
    args = parser.parse_args()
    quick, seed = args.quick, args.seed
    drills: dict[str, Callable[[], list[Figure]]] = {
        "kills": lambda: measure_kills(seed, quick=quick, say=_print_status),
        "storm": lambda: measure_storm(
            seed, args.runs or (QUICK_RUNS if quick else RUNS), quick=quick, say=_print_status
        ),
        "frozen": lambda: measure_frozen_worker(quick=quick, say=_print_status),
        "fairness": lambda: measure_fairness(quick=quick, say=_print_status),
        "privilege": lambda: measure_privilege(quick=quick, say=_print_status),
    }
    figures: list[Figure] = []
    for name in args.drill or names:
        began = time.monotonic()
        figures += drills[name]()
        _print_status(f"{name} took {time.monotonic() - began:.0f} s")
    return 0 if print_figures("chaos", figures, seed=seed, quick=quick) else 1


def _print_status(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
