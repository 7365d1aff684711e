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
from support.engine_contract import ask_before_accept

add = SqlJournal.add


async def add_then_die(self: SqlJournal, record: Any, fence: int) -> None:
    await add(self, record, fence)
    if record.kind == "answer":
        os.kill(os.getpid(), signal.SIGKILL)


loop.STEPS[Step.decide] = ask_before_accept  # type: ignore[index]
if sys.argv[1] == "--die":
    SqlJournal.add = add_then_die  # type: ignore[method-assign]
    del sys.argv[1]
main()
