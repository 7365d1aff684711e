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
from redstart.testing.states import make_state
from support.store import MemoryBlobs, create_memory_database

ENVIRONMENT = Environment(mount="/repo", python="/usr/bin/python3")


def create_execution(argument: str) -> Execution:
    return Execution(argv=(argument,), snapshot=Snapshot(tree="t", base="t", pack=""), environment=ENVIRONMENT)


def create_completed(output: str) -> Completed:
    return Completed(exit_code=0, cause=ExitCause.ok, output=output, files={"report": f"of {output}"})


class WarmFake(FakeSandbox):
    """A sandbox whose output says whether an execution ran in a session, and that counts sessions."""

    def __init__(self) -> None:
        super().__init__(lambda request: create_completed(f"fresh {request.argv[0]}"))
        self.warm = FakeSandbox(lambda request: create_completed(f"warm {request.argv[0]}"))
        self.opened = self.open = 0

    @contextlib.asynccontextmanager
    async def open_session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[FakeSandbox]:
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
        database = create_memory_database()
        self.journal, self.blobs = SqlJournal(database), MemoryBlobs()
        store = SqlStore(database, time.time)
        asyncio.run(store.create(make_state(run_id="run-1"), folder="/f", created=datetime(2030, 1, 1, tzinfo=UTC)))
        self.fence = asyncio.run(store.claim("run-1")).fence

    def run_executions(self, sandbox: WarmFake | None, *arguments: str, replaying: bool = False) -> list[str]:
        """Run executions in a session, and then one more outside of it; return their outputs."""
        call = CallPlace("run-1", 1, "test", 0)
        recorder = JournalRecorder(
            self.journal,
            self.blobs,
            call,
            self.fence,
            is_replaying=replaying,
            on_discard=lambda *_: pytest.fail("gone"),
        )
        journaled_sandbox = JournaledSandbox(sandbox, recorder, self.blobs)

        async def step() -> list[Completed]:
            async with journaled_sandbox.open_session(ENVIRONMENT, SandboxLimits()) as session:
                results = [await session.run(create_execution(argument)) for argument in arguments]
            return [*results, await journaled_sandbox.run(create_execution("last"))]

        results = asyncio.run(step())
        assert all(result.files == {"report": f"of {result.output}"} for result in results)
        return [result.output for result in results]


def test_resumed_step_reads_recorded_results_and_opens_no_session() -> None:
    runner, first_sandbox, second_sandbox = Desk(), WarmFake(), WarmFake()
    expected = ["warm a", "warm b", "fresh last"]
    assert runner.run_executions(first_sandbox, "a", "b") == expected
    assert (first_sandbox.opened, first_sandbox.open) == (1, 0)
    assert runner.run_executions(second_sandbox, "a", "b") == expected
    assert runner.run_executions(None, "a", "b", replaying=True) == expected
    assert (second_sandbox.opened, second_sandbox.executions, second_sandbox.warm.executions) == (0, [], [])


def test_session_opens_at_the_first_unrecorded_execution() -> None:
    runner, sandbox = Desk(), WarmFake()
    runner.run_executions(WarmFake())
    with pytest.raises(ReplayDiverged):
        runner.run_executions(None, "a", replaying=True)
    assert Desk().run_executions(sandbox) == ["fresh last"]
    assert sandbox.opened == 0


def test_driver_without_a_sandbox_hands_the_run_over() -> None:
    with pytest.raises(Needs):
        Desk().run_executions(None, "a")
