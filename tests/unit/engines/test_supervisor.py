"""How a supervisor reacts to its drivers' reports and to commands from people, on a real server."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator

import pytest

from redstart.app.servers.temporal import Temporal, serve_temporal
from redstart.core.errors import ConfigError, Fenced, ModelRefused, PolicyViolation, ReplayDiverged, StoreError
from redstart.core.run import Result, RunState, Status
from redstart.engines.temporal import driver, worker
from redstart.engines.temporal.client import FleetClient, SupervisorInfo
from redstart.engines.temporal.driver import DriveFunction
from redstart.engines.temporal.orders import DriveOrder, DriveReport, SupervisorState, create_order
from redstart.flow.loop import StepAdvance
from redstart.testing import states
from support.supervised import Workers

pytestmark = pytest.mark.slow

SECONDS = 300.0
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Temporal]:
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as temporal:
        yield temporal


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the heartbeat: a driver learns of a cancelled order with its next heartbeat."""
    monkeypatch.setattr(driver, "BEAT", 0.1)
    monkeypatch.setattr(worker, "BEAT", 0.1)


@pytest.fixture
def state() -> RunState:
    return states.make_state(run_id=f"run-{next(numbers)}")


def make_final_advance(state: RunState) -> StepAdvance:
    return StepAdvance(state.model_copy(update={"status": Status.finished, "result": Result.verified}))


class Script:
    """Returns the advances one after the other, raises exceptions, and records which pool was asked."""

    def __init__(self, *outcomes: StepAdvance | Exception) -> None:
        self._does, self.pools = list(outcomes), list[str]()

    def create_drive(self, pool: str) -> DriveFunction:
        async def go(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
            self.pools.append(pool)
            outcome = self._does.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return go

    def build_drives(self) -> dict[str, DriveFunction]:
        return {pool: self.create_drive(pool) for pool in ("think", "act")}


class Steps:
    """A driver that stays at a step until it is told to halt; an event reports that it entered the step."""

    def __init__(self, state: RunState) -> None:
        self._state, self.at_it = state, threading.Event()

    async def go(self, order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
        self.at_it.set()
        while not (halt := get_halt_reason()):  # noqa: ASYNC110  (asked as a driver asks)
            await asyncio.sleep(0.01)
        return StepAdvance(self._state, halt)

    def build_drives(self) -> dict[str, DriveFunction]:
        return {"think": self.go, "act": self.go}


def finish(workers: Workers, state: RunState) -> DriveReport:
    async def go() -> DriveReport:
        await workers.fleet.submit(state)
        return await workers.fleet.wait_for_end(create_order(state))

    return workers.call(go())


async def wait_until_waiting(fleet: FleetClient, state: RunState) -> SupervisorState:
    while True:
        supervisor_state = await fleet.get_supervisor_state(create_order(state))
        assert supervisor_state is not None
        if supervisor_state.phase == "waits":
            return supervisor_state
        await asyncio.sleep(0.02)


def test_each_privilege_uses_its_own_queue(server: Temporal, state: RunState) -> None:
    script = Script(StepAdvance(state, "needs:think"), StepAdvance(state, "needs:act"), make_final_advance(state))
    with Workers(server.address, script.build_drives()) as workers:
        report = finish(workers, state)
    assert script.pools == ["act", "think", "act"]
    assert (report.status, report.result, report.outcome) == ("finished", "verified", "verified")


def test_machine_problem_is_retried(server: Temporal, state: RunState) -> None:
    script = Script(StoreError("the database is restarting"), OSError("no space"), make_final_advance(state))
    with Workers(server.address, script.build_drives()) as workers:
        assert finish(workers, state).result == "verified"
    assert len(script.pools) == 3


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConfigError("the interpreter is not there", remedy="put it there"), "is not there. put it there"),
        (PolicyViolation("refused"), "refused"),
        (ReplayDiverged("differs"), "differs"),
        (ModelRefused("no such model"), "no such model"),
        (KeyError("sk-secret"), "KeyError on the worker"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_problem_for_a_person_waits_for_them(server: Temporal, state: RunState, error: Exception, said: str) -> None:
    script = Script(error, make_final_advance(state))
    with Workers(server.address, script.build_drives()) as workers:

        async def go() -> tuple[SupervisorState, DriveReport]:
            await workers.fleet.submit(state)
            supervisor_state = await wait_until_waiting(workers.fleet, state)
            await workers.fleet.submit(state)
            return supervisor_state, await workers.fleet.wait_for_end(create_order(state))

        supervisor_state, report = workers.call(go())
    assert (supervisor_state.halt, len(script.pools), report.result) == ("trouble", 2, "verified")
    assert said in supervisor_state.reason
    assert "sk-secret" not in supervisor_state.reason


def test_run_taken_over_by_another_driver_is_released(server: Temporal, state: RunState) -> None:
    with Workers(server.address, Script(Fenced()).build_drives()) as workers:
        assert finish(workers, state).outcome == "fenced"


def test_waiting_run_continues_on_request(server: Temporal, state: RunState) -> None:
    waiting = StepAdvance(state.model_copy(update={"status": Status.paused}))
    script = Script(waiting, make_final_advance(state))
    with Workers(server.address, script.build_drives()) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            assert (await wait_until_waiting(workers.fleet, state)).halt == ""
            assert await workers.fleet.send_signal(create_order(state), "go_on")
            return await workers.fleet.wait_for_end(create_order(state))

        assert workers.call(go()).result == "verified"
    assert len(script.pools) == 2


def test_answer_that_arrives_while_the_drive_ends_is_not_lost(server: Temporal, state: RunState) -> None:
    started_event, message_event = threading.Event(), threading.Event()
    waiting = state.model_copy(update={"status": Status.paused})
    drives: list[int] = []

    async def go(order: DriveOrder, get_halt_reason: Callable[[], str]) -> StepAdvance:
        drives.append(1)
        if len(drives) == 1:
            started_event.set()
            await asyncio.to_thread(message_event.wait, SECONDS)
            return StepAdvance(waiting)
        return make_final_advance(state)

    with Workers(server.address, {"think": go, "act": go}) as workers:

        async def answer() -> DriveReport:
            await workers.fleet.submit(state)
            await asyncio.to_thread(started_event.wait, SECONDS)
            assert await workers.fleet.send_signal(create_order(state), "go_on")
            message_event.set()
            return await workers.fleet.wait_for_end(create_order(state))

        assert workers.call(answer()).result == "verified"
    assert len(drives) == 2


@pytest.mark.parametrize(("signal", "outcome"), [("cancel", "cancel"), ("let_go", "let go")])
def test_signal_during_a_step_ends_the_drive(server: Temporal, state: RunState, signal: str, outcome: str) -> None:
    steps = Steps(state)
    with Workers(server.address, steps.build_drives()) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            await workers.fleet.send_signal(create_order(state), signal)
            return await workers.fleet.wait_for_end(create_order(state))

        assert workers.call(go()).outcome == outcome


def test_run_paused_during_a_step_waits_and_continues(server: Temporal, state: RunState) -> None:
    steps = Steps(state)
    with Workers(server.address, steps.build_drives()) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            await workers.fleet.send_signal(create_order(state), "pause")
            assert (await wait_until_waiting(workers.fleet, state)).halt == "pause"
            steps.at_it.clear()
            await workers.fleet.send_signal(create_order(state), "go_on")
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            await workers.fleet.send_signal(create_order(state), "cancel")
            return await workers.fleet.wait_for_end(create_order(state))

        assert workers.call(go()).outcome == "cancel"


def test_run_without_a_worker_can_be_cancelled(server: Temporal, state: RunState) -> None:
    """No worker acts; the worker that thinks serves the supervisor."""
    with Workers(server.address, {"think": Script().create_drive("think")}) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            await workers.fleet.send_signal(create_order(state), "cancel")
            return await workers.fleet.wait_for_end(create_order(state))

        assert workers.call(go()).outcome == "cancel"


def test_departing_worker_hands_its_run_to_the_next(server: Temporal, state: RunState) -> None:
    steps, script = Steps(state), Script(make_final_advance(state))
    with Workers(server.address, steps.build_drives()) as first_workers:
        first_workers.call(first_workers.fleet.submit(state))
        assert steps.at_it.wait(SECONDS)
    with Workers(server.address, script.build_drives()) as second_workers:
        report = second_workers.call(second_workers.fleet.wait_for_end(create_order(state)))
    assert (report.result, script.pools) == ("verified", ["act"])


def test_second_submit_joins_the_first(server: Temporal, state: RunState) -> None:
    steps = Steps(state)
    with Workers(server.address, steps.build_drives()) as workers:

        async def go() -> DriveReport:
            for _ in range(3):
                await workers.fleet.submit(state)
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            (supervisor,) = await _wait_for_listing(workers.fleet, state)
            assert (supervisor.run_id, supervisor.repo, supervisor.mode) == (state.run_id, "shop", "fix")
            await workers.fleet.send_signal(create_order(state), "cancel")
            return await workers.fleet.wait_for_end(create_order(state))

        assert workers.call(go()).outcome == "cancel"


async def _wait_for_listing(fleet: FleetClient, state: RunState) -> list[SupervisorInfo]:
    """Wait for the supervisor: the server lists it a moment after its start."""
    while True:
        if supervisors := [item for item in await fleet.list_supervisors("home") if item.run_id == state.run_id]:
            return supervisors
        await asyncio.sleep(0.05)


async def test_signal_to_an_unsupervised_run_is_not_delivered(server: Temporal, state: RunState) -> None:
    async def go() -> tuple[bool, SupervisorState | None, bool]:
        fleet = await FleetClient.connect(server.address, "default")
        order = create_order(state)
        return (
            await fleet.send_signal(order, "cancel"),
            await fleet.get_supervisor_state(order),
            await fleet.is_supervised(order),
        )

    assert await go() == (False, None, False)
