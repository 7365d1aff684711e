"""Runs the command and logs the outcome of each of its fenced writes.

    python telling_worker.py FILE ARGUMENTS...

A line is `commit RUN kept`, `record RUN fenced` and so on: for a step's commit, or for a call's record in the journal.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from redstart.cli.main import main
from redstart.core.errors import Fenced
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore

told = Path(sys.argv[1])


def log_line(line: str) -> None:
    with told.open("a") as file:
        file.write(f"{line}\n")


def wrap_write(kind: str, write: Any, get_run_id: Any) -> Any:
    async def logged_write(self: Any, item: Any, fence: int) -> Any:
        outcome = "broken"
        try:
            result = await write(self, item, fence)
            outcome = "kept"
        except Fenced:
            outcome = "fenced"
            raise
        finally:
            log_line(f"{kind} {get_run_id(item)} {outcome}")
        return result

    return logged_write


SqlStore.commit = wrap_write("commit", SqlStore.commit, lambda commit: commit.before.run_id)  # type: ignore[method-assign]
SqlJournal.add = wrap_write("record", SqlJournal.add, lambda record: record.call.run_id)  # type: ignore[method-assign]

sys.argv = ["redstart", *sys.argv[2:]]
main()
