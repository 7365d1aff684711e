"""Run the command with a `decide` that asks a person before it accepts, in every attempt.

    python ask.py [--die] ARGUMENTS...

With --die the process kills itself, as kill -9 does, after the answer is recorded and before the run acts on it.
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
from support.engine_contract import asking

add = SqlJournal.add


async def dying_add(self: SqlJournal, record: Any, fence: int) -> None:
    await add(self, record, fence)
    if record.kind == "answer":
        os.kill(os.getpid(), signal.SIGKILL)


loop.STEPS[Step.decide] = asking  # type: ignore[index]
if sys.argv[1] == "--die":
    SqlJournal.add = dying_add  # type: ignore[method-assign]
    del sys.argv[1]
main()
