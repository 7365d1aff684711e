"""Executions of a session are recorded like any other, and a session opens only when one of them must run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from redstart.core.change import Snapshot
from redstart.core.errors import Needs, ReplayDiverged
from redstart.core.shell import Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.engines.journal import JournaledSandbox, JournalRecorder
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.journal import CallPlace
from redstart.testing.sandbox import FakeSandbox
from redstart.testing.states import state
from support.store import MemoryBlobs, memory_database

ENVIRONMENT = Environment(mount="/repo", python="/usr/bin/python3")


def execution(word: str) -> Execution:
    return Execution(argv=(word,), snapshot=Snapshot(tree="t", base="t", pack=""), environment=ENVIRONMENT)


def ended(output: str) -> Completed:
    return Completed(exit_code=0, cause=ExitCause.ok, output=output, files={"report": f"of {output}"})


class WarmFake(FakeSandbox):
    """A sandbox whose output says whether an execution ran in a session, and that counts sessions."""

    def __init__(self) -> None:
        super().__init__(lambda asked: ended(f"fresh {asked.argv[0]}"))
        self.warm = FakeSandbox(lambda asked: ended(f"warm {asked.argv[0]}"))
        self.opened = self.open = 0

    @contextlib.asynccontextmanager
    async def session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[FakeSandbox]:
        assert (environment, limits) == (ENVIRONMENT, SandboxLimits())
        self.opened += 1
        self.open += 1
        try:
            yield self.warm
        finally:
            self.open -= 1


class Desk:
    """A journal of one run; `run_step` runs the executions of a step."""

    def __init__(self) -> None:
        database = memory_database()
        self.journal, self.blobs = SqlJournal(database), MemoryBlobs()
        store = SqlStore(database, time.time)
        asyncio.run(store.create(state(run_id="run-1"), folder="/f", created=datetime(2030, 1, 1, tzinfo=UTC)))
        self.fence = asyncio.run(store.claim("run-1")).fence

    def look(self, sandbox: WarmFake | None, *words: str, replaying: bool = False) -> list[str]:
        """Run executions in a session, and then one more outside of it; return their outputs."""
        call = CallPlace("run-1", 1, "test", 0)
        recorder = JournalRecorder(
            self.journal, self.blobs, call, self.fence, replaying=replaying, on_discard=lambda *_: pytest.fail("gone")
        )
        journaled = JournaledSandbox(sandbox, recorder, self.blobs)

        async def step() -> list[Completed]:
            async with journaled.session(ENVIRONMENT, SandboxLimits()) as session:
                done = [await session.run(execution(word)) for word in words]
            return [*done, await journaled.run(execution("last"))]

        done = asyncio.run(step())
        assert all(each.files == {"report": f"of {each.output}"} for each in done)
        return [each.output for each in done]


def test_a_step_that_is_entered_again_reads_them_and_opens_no_session() -> None:
    desk, first, again = Desk(), WarmFake(), WarmFake()
    told = ["warm a", "warm b", "fresh last"]
    assert desk.look(first, "a", "b") == told
    assert (first.opened, first.open) == (1, 0)
    assert desk.look(again, "a", "b") == told
    assert desk.look(None, "a", "b", replaying=True) == told
    assert (again.opened, again.executions, again.warm.executions) == (0, [], [])


def test_a_session_is_opened_at_the_first_execution_that_is_not_recorded() -> None:
    desk, sandbox = Desk(), WarmFake()
    desk.look(WarmFake())
    with pytest.raises(ReplayDiverged):
        desk.look(None, "a", replaying=True)
    assert Desk().look(sandbox) == ["fresh last"]
    assert sandbox.opened == 0


def test_a_driver_without_a_sandbox_hands_the_run_on() -> None:
    with pytest.raises(Needs):
        Desk().look(None, "a")
