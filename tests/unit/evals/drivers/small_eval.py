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
from redstart.evals.app import open_evaluation, open_lab
from redstart.evals.outcome import EvaluationPlan
from redstart.evals.runner import digest_tasks
from redstart.evals.task import Base, Task, TaskChange
from redstart.ports.world.system import SystemWorld
from redstart.testing.sandbox import FakeSandbox
from support.rig import BUGGY, CODE, TEST_TEXT, TESTS, create_computed_suite

MODEL = "instrument:noisy-oracle:0.3:0.2"


class StillWorld(SystemWorld):
    def monotonic(self) -> float:
        return 0.0


def make_tasks() -> list[Task]:
    base = Base(change=TaskChange(files={CODE: BUGGY, TESTS: TEST_TEXT}))
    fix = TaskChange(files={CODE: BUGGY.replace(" + 1", "")})
    return [Task(id=f"double/{number}", base=base, fix=fix) for number in range(4)]


def main() -> None:
    home, die_after = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    event_count = 0

    def listen(event: Event) -> None:
        nonlocal event_count
        del event
        event_count += 1
        if event_count == die_after:
            os.kill(os.getpid(), signal.SIGKILL)

    plan = EvaluationPlan(
        name="small",
        source="double",
        tasks=digest_tasks(make_tasks()),
        model=MODEL,
        runs=2,
        limits=Limits(attempts=2),
        verify=Level.quick,
        looks=0,
    )
    settings = Settings(home=home, models=Models(strong=MODEL, fast=MODEL))
    with open_lab(settings, plan.name, listen=listen, world=StillWorld()) as context:
        sandbox = FakeSandbox(create_computed_suite(context.app.trees))
        app = replace(context.app, adapters=replace(context.app.adapters, sandbox=sandbox))
        asyncio.run(open_evaluation(app, context.trials, plan, make_tasks(), lambda _row: None).go(2))
    print(event_count)


if __name__ == "__main__":
    main()
