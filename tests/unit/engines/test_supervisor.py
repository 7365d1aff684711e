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
from redstart.engines.temporal.orders import DriveOrder, DriveReport, SupervisorState, order_of
from redstart.flow.loop import StepAdvance
from redstart.testing import states
from support.supervised import Workers

pytestmark = pytest.mark.slow

SECONDS = 300.0
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Temporal]:
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as started:
        yield started


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the heartbeat: a driver learns of a cancelled order with its next heartbeat."""
    monkeypatch.setattr(driver, "BEAT", 0.1)
    monkeypatch.setattr(worker, "BEAT", 0.1)


@pytest.fixture
def state() -> RunState:
    return states.state(run_id=f"run-{next(numbers)}")


def ended(state: RunState) -> StepAdvance:
    return StepAdvance(state.model_copy(update={"status": Status.finished, "result": Result.verified}))


class Script:
    """Returns the advances one after the other, raises exceptions, and records which pool was asked."""

    def __init__(self, *does: StepAdvance | Exception) -> None:
        self._does, self.pools = list(does), list[str]()

    def of(self, pool: str) -> DriveFunction:
        async def go(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
            self.pools.append(pool)
            done = self._does.pop(0)
            if isinstance(done, Exception):
                raise done
            return done

        return go

    def both(self) -> dict[str, DriveFunction]:
        return {pool: self.of(pool) for pool in ("think", "act")}


class Steps:
    """A driver that stays at a step until it is told to halt; an event reports that it entered the step."""

    def __init__(self, state: RunState) -> None:
        self._state, self.at_it = state, threading.Event()

    async def go(self, order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
        self.at_it.set()
        while not (halt := halting()):  # noqa: ASYNC110  (asked as a driver asks)
            await asyncio.sleep(0.01)
        return StepAdvance(self._state, halt)

    def both(self) -> dict[str, DriveFunction]:
        return {"think": self.go, "act": self.go}


def finish(workers: Workers, state: RunState) -> DriveReport:
    async def go() -> DriveReport:
        await workers.fleet.submit(state)
        return await workers.fleet.ended(order_of(state))

    return workers.call(go())


async def until_it_waits(fleet: FleetClient, state: RunState) -> SupervisorState:
    while True:
        stands = await fleet.standing(order_of(state))
        assert stands is not None
        if stands.phase == "waits":
            return stands
        await asyncio.sleep(0.02)


def test_each_privilege_is_asked_of_its_own_queue(server: Temporal, state: RunState) -> None:
    script = Script(StepAdvance(state, "needs:think"), StepAdvance(state, "needs:act"), ended(state))
    with Workers(server.address, script.both()) as workers:
        report = finish(workers, state)
    assert script.pools == ["act", "think", "act"]
    assert (report.status, report.result, report.outcome) == ("finished", "verified", "verified")


def test_trouble_of_a_machine_is_tried_again(server: Temporal, state: RunState) -> None:
    script = Script(StoreError("the database is restarting"), OSError("no space"), ended(state))
    with Workers(server.address, script.both()) as workers:
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
    ids=lambda given: type(given).__name__,
)
def test_what_a_person_has_to_mend_waits_for_them(
    server: Temporal, state: RunState, error: Exception, said: str
) -> None:
    script = Script(error, ended(state))
    with Workers(server.address, script.both()) as workers:

        async def go() -> tuple[SupervisorState, DriveReport]:
            await workers.fleet.submit(state)
            stands = await until_it_waits(workers.fleet, state)
            await workers.fleet.submit(state)
            return stands, await workers.fleet.ended(order_of(state))

        stands, report = workers.call(go())
    assert (stands.halt, len(script.pools), report.result) == ("trouble", 2, "verified")
    assert said in stands.reason
    assert "sk-secret" not in stands.reason


def test_a_run_that_somebody_took_over_is_let_go(server: Temporal, state: RunState) -> None:
    with Workers(server.address, Script(Fenced()).both()) as workers:
        assert finish(workers, state).outcome == "fenced"


def test_a_run_that_waits_goes_on_when_it_is_told(server: Temporal, state: RunState) -> None:
    waiting = StepAdvance(state.model_copy(update={"status": Status.paused}))
    script = Script(waiting, ended(state))
    with Workers(server.address, script.both()) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            assert (await until_it_waits(workers.fleet, state)).halt == ""
            assert await workers.fleet.tell(order_of(state), "go_on")
            return await workers.fleet.ended(order_of(state))

        assert workers.call(go()).result == "verified"
    assert len(script.pools) == 2


def test_an_answer_that_comes_while_the_drive_ends_is_not_lost(server: Temporal, state: RunState) -> None:
    begun, told = threading.Event(), threading.Event()
    waiting = state.model_copy(update={"status": Status.paused})
    drives: list[int] = []

    async def go(order: DriveOrder, halting: Callable[[], str]) -> StepAdvance:
        drives.append(1)
        if len(drives) == 1:
            begun.set()
            await asyncio.to_thread(told.wait, SECONDS)
            return StepAdvance(waiting)
        return ended(state)

    with Workers(server.address, {"think": go, "act": go}) as workers:

        async def answer() -> DriveReport:
            await workers.fleet.submit(state)
            await asyncio.to_thread(begun.wait, SECONDS)
            assert await workers.fleet.tell(order_of(state), "go_on")
            told.set()
            return await workers.fleet.ended(order_of(state))

        assert workers.call(answer()).result == "verified"
    assert len(drives) == 2


@pytest.mark.parametrize(("signal", "outcome"), [("cancel", "cancel"), ("let_go", "let go")])
def test_a_driver_at_a_step_ends_it_and_the_run_is_over_here(
    server: Temporal, state: RunState, signal: str, outcome: str
) -> None:
    steps = Steps(state)
    with Workers(server.address, steps.both()) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            await workers.fleet.tell(order_of(state), signal)
            return await workers.fleet.ended(order_of(state))

        assert workers.call(go()).outcome == outcome


def test_paused_at_a_step_it_waits_and_goes_on(server: Temporal, state: RunState) -> None:
    steps = Steps(state)
    with Workers(server.address, steps.both()) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            await workers.fleet.tell(order_of(state), "pause")
            assert (await until_it_waits(workers.fleet, state)).halt == "pause"
            steps.at_it.clear()
            await workers.fleet.tell(order_of(state), "go_on")
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            await workers.fleet.tell(order_of(state), "cancel")
            return await workers.fleet.ended(order_of(state))

        assert workers.call(go()).outcome == "cancel"


def test_a_run_without_a_worker_can_be_cancelled(server: Temporal, state: RunState) -> None:
    """No worker acts; the worker that thinks serves the supervisor."""
    with Workers(server.address, {"think": Script().of("think")}) as workers:

        async def go() -> DriveReport:
            await workers.fleet.submit(state)
            await workers.fleet.tell(order_of(state), "cancel")
            return await workers.fleet.ended(order_of(state))

        assert workers.call(go()).outcome == "cancel"


def test_a_worker_that_goes_hands_the_run_to_the_next(server: Temporal, state: RunState) -> None:
    steps, script = Steps(state), Script(ended(state))
    with Workers(server.address, steps.both()) as first:
        first.call(first.fleet.submit(state))
        assert steps.at_it.wait(SECONDS)
    with Workers(server.address, script.both()) as second:
        report = second.call(second.fleet.ended(order_of(state)))
    assert (report.result, script.pools) == ("verified", ["act"])


def test_a_second_submit_joins_the_first(server: Temporal, state: RunState) -> None:
    steps = Steps(state)
    with Workers(server.address, steps.both()) as workers:

        async def go() -> DriveReport:
            for _ in range(3):
                await workers.fleet.submit(state)
            await asyncio.to_thread(steps.at_it.wait, SECONDS)
            (only,) = await _listed(workers.fleet, state)
            assert (only.run_id, only.repo, only.mode) == (state.run_id, "shop", "fix")
            await workers.fleet.tell(order_of(state), "cancel")
            return await workers.fleet.ended(order_of(state))

        assert workers.call(go()).outcome == "cancel"


async def _listed(fleet: FleetClient, state: RunState) -> list[SupervisorInfo]:
    """Wait for the supervisor: the server lists it a moment after its start."""
    while True:
        if found := [item for item in await fleet.supervised("home") if item.run_id == state.run_id]:
            return found
        await asyncio.sleep(0.05)


def test_nobody_hears_what_is_told_to_a_run_without_a_supervisor(server: Temporal, state: RunState) -> None:
    async def go() -> tuple[bool, SupervisorState | None, bool]:
        fleet = await FleetClient.connect(server.address, "default")
        order = order_of(state)
        return await fleet.tell(order, "cancel"), await fleet.standing(order), await fleet.is_supervised(order)

    assert asyncio.run(go()) == (False, None, False)
