"""Steps that return at once what they returned in a recorded run; the driver, the journal and the store are real."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from pydantic import BaseModel

from redstart.core.errors import Needs
from redstart.core.events import Event
from redstart.core.learning import NewMemories
from redstart.core.run import RunState, Step
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import Adapters, drive
from redstart.flow import loop
from redstart.flow.loop import StepFunction
from redstart.ports.bundle import Ports
from redstart.ports.sql.engine import Database
from redstart.ports.sql.journal import SqlJournal
from redstart.ports.sql.memory import SqlMemory
from redstart.ports.sql.store import SqlStore
from redstart.ports.store.port.runs import StepRow
from redstart.ports.world.system import SystemWorld
from support.rig import Rig, block, make_rig

ACTS = frozenset({Step.reproduce, Step.test})
ASKS = frozenset({Step.patch, Step.reflect, Step.remember})
NO_SANDBOX = "none"
TWO_POOLS = "two-pools"
"""The repo of runs that one pool cannot drive alone."""
STEPS = cast("dict[Step, StepFunction]", loop.STEPS)


class Written(NamedTuple):
    """What a commit of the recorded run holds."""

    state: str
    artifact: str
    events: str


class Canned(NamedTuple):
    """A recorded run of five attempts that stays red: every step is on its way."""

    first: RunState
    steps: tuple[Step, ...]
    trail: tuple[Written, ...]
    rig: Rig

    def create_state(self, run_id: str) -> RunState:
        return self.first.model_copy(update={"run_id": run_id})


def record(folder: Path) -> Canned:
    """Drives the run once in memory, and puts steps in place of the real ones that give its artifacts again.

    A step that would run tests, or ask a model, halts on a driver that cannot, as the real one does. Raises
    `AssertionError` where the run does not go as it should.
    """
    rig = make_rig(folder)
    number = iter(range(3, 1000))
    rig.with_model(lambda _: block("    return number + number + 1", f"    return number * {next(number)}"))
    artifacts: dict[tuple[Step, int], BaseModel] = {}
    for step in Step:
        STEPS[step] = _record_artifacts(step, STEPS[step], artifacts)

    async def go() -> tuple[RunState, list[StepRow], list[Event]]:
        run_id = await rig.begin()
        store = rig.adapters.store
        await drive(rig.adapters, await store.claim(run_id), run_inline)
        return await store.load_first(run_id), await store.list_steps(run_id), await store.list_events(run_id)

    first_state, rows, events = asyncio.run(go())
    assert {row.step for row in rows} == set(Step), "the recorded run does not come by every step"
    for step in Step:
        STEPS[step] = _create_noop(step, artifacts)
    return Canned(first_state, tuple(row.step for row in rows), tuple(_build_row(row, events) for row in rows), rig)


def _record_artifacts(step: Step, work: StepFunction, artifacts: dict[tuple[Step, int], BaseModel]) -> StepFunction:
    async def recording_step(run: RunState, ports: Ports) -> BaseModel:
        artifacts[step, run.now.number] = artifact = await work(run, ports)
        return artifact

    return recording_step


def _build_row(row: StepRow, events: list[Event]) -> Written:
    step_events = [event for event in events if (event.attempt, event.name) == (row.attempt, row.step.value)]
    events_json = "".join(item.model_dump_json() for item in step_events)
    return Written(row.state.model_dump_json(), row.artifact, events_json)


def _create_noop(step: Step, artifacts: dict[tuple[Step, int], BaseModel]) -> StepFunction:
    async def run_noop(run: RunState, ports: Ports) -> BaseModel:
        has_sandbox = ports.sandbox.tier != NO_SANDBOX
        if step in ACTS and not has_sandbox:
            raise Needs("act")
        if step in ASKS and run.spec.repo == TWO_POOLS and has_sandbox:
            raise Needs("think")
        artifact = artifacts[step, run.now.number]
        if isinstance(artifact, NewMemories) and artifact.failure is not None:
            # Ids are the run's own, as those of the real step are.
            failure = artifact.failure.model_copy(update={"id": f"{run.run_id}-{run.now.number}"})
            return artifact.model_copy(update={"failure": failure})
        return artifact

    return run_noop


def on_database(canned: Canned, database: Database) -> Adapters:
    """What the recorded run stood on, with this database under it."""
    world = SystemWorld()
    return replace(
        canned.rig.adapters,
        store=SqlStore(database, world.now),
        journal=SqlJournal(database),
        memory=SqlMemory(database),
        world=world,
        listen=lambda _: None,
    )
