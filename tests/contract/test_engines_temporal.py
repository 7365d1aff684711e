"""The engine contract under Temporal, and runs that a supervisor passes between a thinking and an acting worker."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.app.servers.temporal import Temporal, serve_temporal
from redstart.core.run import RunState
from redstart.engines.drive import Adapters, drive
from redstart.engines.inline import inline
from redstart.engines.port import Engine
from redstart.engines.temporal.orders import DriveOrder, DriveReport
from support.engine_contract import SCENARIOS, EngineContract, Scenario, comparable
from support.rig import Keep, Rig, make_rig
from support.supervised import SupervisedEngine, Workers, driving

pytestmark = pytest.mark.parametrize("keep", ["sqlite", "postgres"], indirect=True)
"""A fleet's workers share a database."""
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Temporal]:
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as started:
        yield started


@pytest.fixture(scope="class")
def supervised(server: Temporal) -> Iterator[SupervisedEngine]:
    with SupervisedEngine(server.address) as engine:
        yield engine


@pytest.fixture
def rig(tmp_path: Path, keep: Keep) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots", keep)
    yield made
    made.trees.close()


class TestTemporal(EngineContract):
    @pytest.fixture
    def engine(self, supervised: SupervisedEngine) -> Engine:
        return supervised


@pytest.fixture
def rigs() -> dict[str, Rig]:
    """Return a dict for rigs by tenant."""
    return {}


@pytest.fixture
def pools(server: Temporal, rigs: dict[str, Rig]) -> Iterator[Workers]:
    def thinks(order: DriveOrder) -> Adapters:
        return replace(rigs[order.tenant].adapters, sandbox=None, installer=None)

    def acts(order: DriveOrder) -> Adapters:
        return replace(rigs[order.tenant].adapters, model=None)

    with Workers(server.address, {"think": driving(thinks), "act": driving(acts)}) as workers:
        yield workers


@pytest.fixture
def to_the_end(pools: Workers, rigs: dict[str, Rig]) -> Callable[[Rig, RunState], DriveReport]:
    def run(rig: Rig, state: RunState) -> DriveReport:
        tenant = f"tenant-{next(numbers)}"
        rigs[tenant] = rig
        spec = state.spec.model_copy(update={"tenant": tenant})

        async def go() -> DriveReport:
            await pools.fleet.submit(state.model_copy(update={"spec": spec}))
            return await pools.fleet.ended(DriveOrder(tenant, state.run_id))

        return pools.call(go())

    return run


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_two_pools_end_a_run_as_one_driver_does(
    scenario: Scenario, rig: Rig, to_the_end: Callable[[Rig, RunState], DriveReport]
) -> None:
    model = rig.with_model(scenario.answers)
    state = _begun(rig, scenario)
    report = to_the_end(rig, state)
    assert (report.status, report.result) == ("finished", scenario.result.value)
    assert asyncio.run(rig.trail(state.run_id)) == list(scenario.trail)
    twin = rig.twin()
    alone = twin.with_model(scenario.answers)
    assert comparable(asyncio.run(rig.adapters.store.load(state.run_id))) == comparable(_at_home(twin, scenario))
    assert len(model.asks) == len(alone.asks)


def _begun(rig: Rig, scenario: Scenario) -> RunState:
    async def go() -> RunState:
        return await rig.adapters.store.load(await rig.begin(limits=scenario.limits))

    return asyncio.run(go())


def _at_home(rig: Rig, scenario: Scenario) -> RunState:
    async def go() -> RunState:
        claim = await rig.adapters.store.claim(await rig.begin(limits=scenario.limits))
        return (await drive(rig.adapters, claim, inline)).state

    return asyncio.run(go())
