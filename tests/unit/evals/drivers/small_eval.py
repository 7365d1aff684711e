"""Run an evaluation of a few tasks that kills itself after so many events, for test_eval_runner.py.

    python small_eval.py HOME [EVENTS]

The suite is computed, the clock stands still, and the model is a noisy oracle: what remains is the work of the harness.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))

from redstart.app.settings import Models, Settings
from redstart.core.events import Event
from redstart.core.run import Level, Limits
from redstart.evals.desk import evaluation, open_lab
from redstart.evals.outcome import EvaluationPlan
from redstart.evals.runner import digest_of
from redstart.evals.task import Base, Task, TaskChange
from redstart.ports.world.system import SystemWorld
from redstart.testing.sandbox import FakeSandbox
from support.rig import BUGGY, CODE, TEST_TEXT, TESTS, computed_suite

MODEL = "instrument:noisy-oracle:0.3:0.2"


class StillWorld(SystemWorld):
    def monotonic(self) -> float:
        return 0.0


def tasks() -> list[Task]:
    base = Base(change=TaskChange(files={CODE: BUGGY, TESTS: TEST_TEXT}))
    fix = TaskChange(files={CODE: BUGGY.replace(" + 1", "")})
    return [Task(id=f"double/{number}", base=base, fix=fix) for number in range(4)]


def main() -> None:
    home, die_after = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    heard = 0

    def listen(event: Event) -> None:
        nonlocal heard
        del event
        heard += 1
        if heard == die_after:
            os.kill(os.getpid(), signal.SIGKILL)

    plan = EvaluationPlan(
        name="small",
        source="double",
        tasks=digest_of(tasks()),
        model=MODEL,
        runs=2,
        limits=Limits(attempts=2),
        verify=Level.quick,
        looks=0,
    )
    settings = Settings(home=home, models=Models(strong=MODEL, fast=MODEL))
    with open_lab(settings, plan.name, listen=listen, world=StillWorld()) as lab:
        sandbox = FakeSandbox(computed_suite(lab.house.trees))
        house = replace(lab.house, adapters=replace(lab.house.adapters, sandbox=sandbox))
        asyncio.run(evaluation(house, lab.trials, plan, tasks(), lambda _row: None).go(2))
    print(heard)


if __name__ == "__main__":
    main()
