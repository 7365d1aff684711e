"""Run the command and kill its own process, as kill -9 does, before, during or after a step of the first attempt.

    python crash.py STEP before|heard|during|after|making:N|made:N ARGUMENTS...

"heard" is right after the person's input is recorded. "during" is right after the step's first recorded call, or,
in a step without calls, between its work and its commit. "making:N" is right before the step's call with that ordinal
is made, and "made:N" right after it is recorded.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from redstart.cli.main import main
from redstart.core.run import Step
from redstart.engines.journal import JournalRecorder
from redstart.flow import loop
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.ordinals import OutsideOrdinal

step, moment = Step(sys.argv[1]), sys.argv[2]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def die_before_call(*arguments: Any) -> Any:
    die()


def die_after_work(work: Any) -> Any:
    async def wrapper(*arguments: Any) -> Any:
        result = await work(*arguments)
        die()
        return result

    return wrapper


add, commit = SqlJournal.add, SqlStore.commit


async def add_then_die(self: SqlJournal, record: Any, fence: int) -> None:
    await add(self, record, fence)
    is_own_call = record.call.step == step.value and record.call.ordinal >= OutsideOrdinal.heard
    if is_own_call and (record.call.ordinal == OutsideOrdinal.heard) is (moment == "heard"):
        die()


async def commit_then_die(self: SqlStore, step_commit: Any, fence: int) -> Any:
    control = await commit(self, step_commit, fence)
    if step_commit.step is step:
        die()
    return control


recall = JournalRecorder._call_or_replay  # pyright: ignore[reportPrivateUsage]


async def die_before_making(self: JournalRecorder, call: CallPlace, *arguments: Any) -> str:
    if (call.step, call.ordinal) == (step.value, ordinal):
        die()
    return await recall(self, call, *arguments)


async def add_ordinal_then_die(self: SqlJournal, record: Any, fence: int) -> None:
    await add(self, record, fence)
    if (record.call.step, record.call.ordinal) == (step.value, ordinal):
        die()


moment, _, number = moment.partition(":")
ordinal = int(number or 0)
if moment == "making":
    JournalRecorder._call_or_replay = die_before_making  # type: ignore[method-assign]
elif moment == "made":
    SqlJournal.add = add_ordinal_then_die  # type: ignore[method-assign]
elif moment == "before":
    loop.STEPS[step] = die_before_call  # type: ignore[index]
elif moment == "heard":
    SqlJournal.add = add_then_die  # type: ignore[method-assign]
elif moment == "during":
    SqlJournal.add = add_then_die  # type: ignore[method-assign]
    loop.STEPS[step] = die_after_work(loop.STEPS[step])  # type: ignore[index]
else:
    SqlStore.commit = commit_then_die  # type: ignore[method-assign]

sys.argv = ["redstart", *sys.argv[3:]]
main()
