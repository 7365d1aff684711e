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


def tell(line: str) -> None:
    with told.open("a") as file:
        file.write(f"{line}\n")


def telling(kind: str, write: Any, run_of: Any) -> Any:
    async def writing(self: Any, what: Any, fence: int) -> Any:
        become = "broken"
        try:
            done = await write(self, what, fence)
            become = "kept"
        except Fenced:
            become = "fenced"
            raise
        finally:
            tell(f"{kind} {run_of(what)} {become}")
        return done

    return writing


SqlStore.commit = telling("commit", SqlStore.commit, lambda commit: commit.before.run_id)  # type: ignore[method-assign]
SqlJournal.add = telling("record", SqlJournal.add, lambda record: record.call.run_id)  # type: ignore[method-assign]

sys.argv = ["redstart", *sys.argv[2:]]
main()
