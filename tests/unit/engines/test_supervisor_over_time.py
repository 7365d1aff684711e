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
    create_order,
    make_workflow_id,
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
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as temporal:
        yield temporal


@pytest.fixture
def state() -> RunState:
    return states.make_state(run_id=f"over-time-{next(numbers)}")


def make_final_advance(state: RunState) -> StepAdvance:
    return StepAdvance(state.model_copy(update={"status": Status.finished, "result": Result.verified}))


def test_recorded_histories_exist():
    assert HISTORIES


@pytest.mark.parametrize("file", HISTORIES, ids=lambda file: file.stem)
async def test_recorded_history_replays(file: Path) -> None:
    """A change of the supervisor that fails here breaks every active run: see `workflow.patched`."""
    history = WorkflowHistory.from_json(file.stem, file.read_text())
    await Replayer(workflows=[RunSupervisor]).replay_workflow(history)


@pytest.mark.slow
def test_long_history_is_continued_as_new(server: Temporal, state: RunState) -> None:
    drives: list[str] = []

    def create_drive(pool: str, other_pool: str) -> Callable[..., object]:
        async def go(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
            drives.append(pool)
            return make_final_advance(state) if len(drives) == 8 else StepAdvance(state, f"needs:{other_pool}")

        return go

    go = {"think": create_drive("think", "act"), "act": create_drive("act", "think")}
    with Workers(server.address, go) as workers:
        order = create_order(state)

        async def run() -> tuple[DriveReport, int]:
            client = workers.fleet.client
            watch = SupervisorOrder(order, "act", history=3)
            await client.start_workflow(SUPERVISOR, watch, id=make_workflow_id(order), task_queue=THINK)
            report = await workers.fleet.wait_for_end(order)
            final_history = await client.get_workflow_handle(make_workflow_id(order)).fetch_history()
            return report, len(final_history.events)

        report, events = workers.call(run())
    assert (report.result, drives) == ("verified", ["act", "think"] * 4)
    assert events < 25, "the last of three histories holds only the latest events"


@pytest.mark.slow
def test_run_started_by_one_build_is_finished_by_the_next(server: Temporal, state: RunState) -> None:
    started_event = threading.Event()
    builds: list[str] = []

    async def drive_first_build(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
        builds.append("a")
        started_event.set()
        while not (halt := get_halt_reason()):  # noqa: ASYNC110  (asked as a driver asks)
            await asyncio.sleep(0.01)
        return StepAdvance(state, halt)

    async def drive_second_build(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
        builds.append("b")
        return make_final_advance(state)

    with ExitStack() as stack:
        new = Workers(
            server.address, {"think": drive_second_build, "act": drive_second_build}, deployment="redstart", build="b"
        )
        with Workers(
            server.address, {"think": drive_first_build, "act": drive_first_build}, deployment="redstart", build="a"
        ) as old:
            old.call(promote_when_known(old.fleet, "a"))
            old.call(old.fleet.submit(state))
            assert started_event.wait(SECONDS)
            stack.enter_context(new)
            new.call(promote_when_known(new.fleet, "b"))
        report = new.call(new.fleet.wait_for_end(create_order(state)))
    assert (report.result, builds) == ("verified", ["a", "b"])


async def promote_when_known(fleet: FleetClient, build: str) -> None:
    """Promote the build once the server knows it, which is after its workers first poll for work."""
    while True:
        try:
            return await fleet.promote("redstart", build)
        except ConfigError:
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_build_without_workers_cannot_be_promoted(server: Temporal) -> None:
    async def go() -> None:
        await (await FleetClient.connect(server.address, "default")).promote("redstart", "nobody's")

    with pytest.raises(ConfigError, match="no worker"):
        await go()
