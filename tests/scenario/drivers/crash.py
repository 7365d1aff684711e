"""Run the command and kill its own process, as kill -9 does, before, during or after a step of the first attempt.

    python crash.py STEP before|heard|during|after ARGUMENTS...

"heard" is right after the person's input is recorded. "during" is right after the step's first recorded call, or,
in a step without calls, between its work and its commit.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from redstart.cli.main import main
from redstart.core.run import Step
from redstart.flow import loop
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.ordinals import OutsideOrdinal

step, moment = Step(sys.argv[1]), sys.argv[2]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def dying_before(*arguments: Any) -> Any:
    die()


def dying_without_a_call(work: Any) -> Any:
    async def working(*arguments: Any) -> Any:
        made = await work(*arguments)
        die()
        return made

    return working


add, commit = SqlJournal.add, SqlStore.commit


async def dying_add(self: SqlJournal, record: Any, fence: int) -> None:
    await add(self, record, fence)
    own = record.call.step == step.value and record.call.ordinal >= OutsideOrdinal.heard
    if own and (record.call.ordinal == OutsideOrdinal.heard) is (moment == "heard"):
        die()


async def dying_commit(self: SqlStore, done: Any, fence: int) -> Any:
    control = await commit(self, done, fence)
    if done.step is step:
        die()
    return control


if moment == "before":
    loop.STEPS[step] = dying_before  # type: ignore[index]
elif moment == "heard":
    SqlJournal.add = dying_add  # type: ignore[method-assign]
elif moment == "during":
    SqlJournal.add = dying_add  # type: ignore[method-assign]
    loop.STEPS[step] = dying_without_a_call(loop.STEPS[step])  # type: ignore[index]
else:
    SqlStore.commit = dying_commit  # type: ignore[method-assign]

sys.argv = ["redstart", *sys.argv[3:]]
main()
