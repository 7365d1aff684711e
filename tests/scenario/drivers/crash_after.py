"""Run the command and kill its own process, as kill -9 does, right after COUNT writes of one kind.

    python crash_after.py COUNT commit|record|create ARGUMENTS...

`commit` counts the commits of steps, `record` the calls recorded in the journal, and `create` the child runs. A
command with fewer writes ends normally.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from redstart.cli.main import main
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore

left, kind = int(sys.argv[1]), sys.argv[2]


def counted(write: Any, counts: Any) -> Any:
    async def writing(self: Any, *arguments: Any, **named: Any) -> Any:
        global left
        done = await write(self, *arguments, **named)
        left -= bool(counts(*arguments))
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return writing


if kind == "commit":
    SqlStore.commit = counted(SqlStore.commit, lambda *_: True)  # type: ignore[method-assign]
elif kind == "record":
    SqlJournal.add = counted(SqlJournal.add, lambda *_: True)  # type: ignore[method-assign]
else:
    SqlStore.create = counted(SqlStore.create, lambda state, *_: state.spec.errand)  # type: ignore[method-assign]

sys.argv = ["redstart", *sys.argv[3:]]
main()
