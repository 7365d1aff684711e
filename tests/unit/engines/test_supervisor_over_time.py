"""A supervisor over days and deploys: long histories restart, new builds take over, and old histories replay."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from redstart.app.servers.temporal import Temporal, serve_temporal
from redstart.core.errors import ConfigError
from redstart.core.run import Result, RunState, Status
from redstart.engines.temporal.client import FleetClient
from redstart.engines.temporal.orders import (
    SUPERVISOR,
    THINK,
    DriveOrder,
    DriveReport,
    SupervisorOrder,
    order_of,
    workflow_id,
)
from redstart.engines.temporal.supervisor import RunSupervisor
from redstart.flow.loop import StepAdvance
from redstart.testing import states
from support.supervised import Workers

HISTORIES = sorted((Path(__file__).parent / "histories").glob("*.json"))
SECONDS = 300.0
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Temporal]:
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as started:
        yield started


@pytest.fixture
def state() -> RunState:
    return states.state(run_id=f"over-time-{next(numbers)}")


def ended(state: RunState) -> StepAdvance:
    return StepAdvance(state.model_copy(update={"status": Status.finished, "result": Result.verified}))


def test_there_are_histories_to_replay():
    assert HISTORIES


@pytest.mark.parametrize("file", HISTORIES, ids=lambda file: file.stem)
def test_a_history_that_was_recorded_replays(file: Path) -> None:
    """A change of the supervisor that fails here breaks every active run: see `workflow.patched`."""
    history = WorkflowHistory.from_json(file.stem, file.read_text())
    asyncio.run(Replayer(workflows=[RunSupervisor]).replay_workflow(history))


@pytest.mark.slow
def test_a_history_that_has_grown_long_is_begun_anew(server: Temporal, state: RunState) -> None:
    drives: list[str] = []

    def serving(pool: str, other: str) -> Callable[..., object]:
        async def go(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
            drives.append(pool)
            return ended(state) if len(drives) == 8 else StepAdvance(state, f"needs:{other}")

        return go

    go = {"think": serving("think", "act"), "act": serving("act", "think")}
    with Workers(server.address, go) as workers:
        order = order_of(state)

        async def run() -> tuple[DriveReport, int]:
            client = workers.fleet.client
            watch = SupervisorOrder(order, "act", history=3)
            await client.start_workflow(SUPERVISOR, watch, id=workflow_id(order), task_queue=THINK)
            report = await workers.fleet.ended(order)
            last = await client.get_workflow_handle(workflow_id(order)).fetch_history()
            return report, len(last.events)

        report, events = workers.call(run())
    assert (report.result, drives) == ("verified", ["act", "think"] * 4)
    assert events < 25, "the last of three histories holds only the latest events"


@pytest.mark.slow
def test_a_run_that_one_build_began_is_finished_by_the_next(server: Temporal, state: RunState) -> None:
    begun = threading.Event()
    builds: list[str] = []

    async def first(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
        builds.append("a")
        begun.set()
        while not (halt := halting()):  # noqa: ASYNC110  (asked as a driver asks)
            await asyncio.sleep(0.01)
        return StepAdvance(state, halt)

    async def second(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
        builds.append("b")
        return ended(state)

    with ExitStack() as stack:
        new = Workers(server.address, {"think": second, "act": second}, deployment="redstart", build="b")
        with Workers(server.address, {"think": first, "act": first}, deployment="redstart", build="a") as old:
            old.call(promoted(old.fleet, "a"))
            old.call(old.fleet.submit(state))
            assert begun.wait(SECONDS)
            stack.enter_context(new)
            new.call(promoted(new.fleet, "b"))
        report = new.call(new.fleet.ended(order_of(state)))
    assert (report.result, builds) == ("verified", ["a", "b"])


async def promoted(fleet: FleetClient, build: str) -> None:
    """Promote the build once the server knows it, which is after its workers first poll for work."""
    while True:
        try:
            return await fleet.promote("redstart", build)
        except ConfigError:
            await asyncio.sleep(0.1)


@pytest.mark.slow
def test_a_build_that_nobody_serves_cannot_be_promoted(server: Temporal) -> None:
    async def go() -> None:
        await (await FleetClient.connect(server.address, "default")).promote("redstart", "nobody's")

    with pytest.raises(ConfigError, match="no worker"):
        asyncio.run(go())
