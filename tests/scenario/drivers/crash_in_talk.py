"""Run the command and kill its own process, as kill -9 does, right after an answer of a conversation is recorded.

    python crash_in_talk.py ORDINAL ARGUMENTS...

ORDINAL is the number of the call in the first attempt's `patch`.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial
from typing import Any

from redstart.app import runs
from redstart.cli.main import main
from redstart.ports.sql.journal import SqlJournal

ordinal = int(sys.argv[1])
add = SqlJournal.add


async def add_then_die(self: SqlJournal, record: Any, fence: int) -> None:
    await add(self, record, fence)
    if (record.call.step, record.call.ordinal, record.kind) == ("patch", ordinal, "model"):
        os.kill(os.getpid(), signal.SIGKILL)


SqlJournal.add = add_then_die  # type: ignore[method-assign]
runs.RunSpec = partial(runs.RunSpec, looks=6)  # type: ignore[misc, assignment]

sys.argv = ["redstart", *sys.argv[2:]]
main()
