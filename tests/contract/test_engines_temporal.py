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
from redstart.engines.inline import run_inline
from redstart.engines.port import Engine
from redstart.engines.step_driver import Adapters, drive
from redstart.engines.temporal.orders import DriveOrder, DriveReport
from support.engine_contract import SCENARIOS, EngineContract, Scenario, mask_run
from support.rig import Keep, Rig, make_rig
from support.supervised import SupervisedEngine, Workers, create_drive

pytestmark = pytest.mark.parametrize("keep", ["sqlite", "postgres"], indirect=True)
"""A fleet's workers share a database."""
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Temporal]:
    with serve_temporal(tmp_path_factory.mktemp("temporal")) as temporal:
        yield temporal


@pytest.fixture(scope="class")
def supervised(server: Temporal) -> Iterator[SupervisedEngine]:
    with SupervisedEngine(server.address) as engine:
        yield engine


@pytest.fixture
def rig(tmp_path: Path, keep: Keep) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path / "snapshots", keep)
    yield new_rig
    new_rig.trees.close()


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
    def make_model_adapters(order: DriveOrder) -> Adapters:
        return replace(rigs[order.tenant].adapters, sandbox=None, installer=None)

    def make_sandbox_adapters(order: DriveOrder) -> Adapters:
        return replace(rigs[order.tenant].adapters, model=None)

    with Workers(
        server.address, {"think": create_drive(make_model_adapters), "act": create_drive(make_sandbox_adapters)}
    ) as workers:
        yield workers


@pytest.fixture
def to_the_end(pools: Workers, rigs: dict[str, Rig]) -> Callable[[Rig, RunState], DriveReport]:
    def run(rig: Rig, state: RunState) -> DriveReport:
        tenant = f"tenant-{next(numbers)}"
        rigs[tenant] = rig
        spec = state.spec.model_copy(update={"tenant": tenant})

        async def go() -> DriveReport:
            await pools.fleet.submit(state.model_copy(update={"spec": spec}))
            return await pools.fleet.wait_for_end(DriveOrder(tenant, state.run_id))

        return pools.call(go())

    return run


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_two_pools_end_a_run_like_a_single_driver(
    scenario: Scenario, rig: Rig, to_the_end: Callable[[Rig, RunState], DriveReport]
) -> None:
    model = rig.with_model(scenario.answers)
    state = _begin_run(rig, scenario)
    report = to_the_end(rig, state)
    assert (report.status, report.result) == ("finished", scenario.result.value)
    assert asyncio.run(rig.list_steps(state.run_id)) == list(scenario.trail)
    twin = rig.twin()
    single_rig = twin.with_model(scenario.answers)
    assert mask_run(asyncio.run(rig.adapters.store.load(state.run_id))) == mask_run(_drive_inline(twin, scenario))
    assert len(model.questions) == len(single_rig.questions)


def _begin_run(rig: Rig, scenario: Scenario) -> RunState:
    async def go() -> RunState:
        return await rig.adapters.store.load(await rig.begin(limits=scenario.limits))

    return asyncio.run(go())


def _drive_inline(rig: Rig, scenario: Scenario) -> RunState:
    async def go() -> RunState:
        claim = await rig.adapters.store.claim(await rig.begin(limits=scenario.limits))
        return (await drive(rig.adapters, claim, run_inline)).state

    return asyncio.run(go())
