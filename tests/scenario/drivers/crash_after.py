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


def count_writes(write: Any, is_counted: Any) -> Any:
    async def wrapper(self: Any, *arguments: Any, **keywords: Any) -> Any:
        global left
        result = await write(self, *arguments, **keywords)
        left -= bool(is_counted(*arguments))
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapper


if kind == "commit":
    SqlStore.commit = count_writes(SqlStore.commit, lambda *_: True)  # type: ignore[method-assign]
elif kind == "record":
    SqlJournal.add = count_writes(SqlJournal.add, lambda *_: True)  # type: ignore[method-assign]
else:
    SqlStore.create = count_writes(SqlStore.create, lambda state, *_: state.spec.errand)  # type: ignore[method-assign]

sys.argv = ["redstart", *sys.argv[3:]]
main()
