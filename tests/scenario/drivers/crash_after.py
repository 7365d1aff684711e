"""Runs the command and kills its own process, as kill -9 does, right after so many writes of one kind.

    python crash_after.py COUNT commit|record|create ARGUMENTS...

A commit is that of a step, a record that of a call in the journal, and what is created is a run that another one
began. A command that writes less often than that ends as it would without us.
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
