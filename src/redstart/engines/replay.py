"""Replay a finished run from its journal alone: no model, no sandbox, no writes."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from redstart.core.errors import ReplayDiverged
from redstart.core.events import Event, Phase
from redstart.core.formats import recorder, this_version
from redstart.core.run import RunState, Status, Step
from redstart.core.standing import Control, HaltReason
from redstart.engines.drive import Adapters, RunDriver
from redstart.flow.loop import Advance, StepAdvance, loop
from redstart.flow.route import takes_answer, wake
from redstart.ports.store.port.runs import StepCommit, StepRow


class ReplayResult(NamedTuple):
    state: RunState
    steps: int
    calls: int


async def replay(adapters: Adapters, run_id: str) -> ReplayResult:
    """Execute every step again and compare it with what was committed.

    Raises `ReplayDiverged` that names the first call, or the artifact of the first step, that differs. It also names
    the version that recorded the run, if it is a different one.
    """
    records = await adapters.journal.records(run_id)
    try:
        state, steps = await _replay(adapters, run_id)
    except ReplayDiverged as error:
        others = sorted({recorder(record.recorded_by) for record in records if record.recorded_by != this_version()})
        if not others:
            raise
        raise ReplayDiverged(
            f"run {run_id} was recorded by {' and '.join(others)}; {recorder(this_version())} differs at {error}",
            remedy=f"replay it with {others[-1]}",
        ) from error
    return ReplayResult(state, steps, len(records))


async def _replay(adapters: Adapters, run_id: str) -> tuple[RunState, int]:
    """Return the final state and the number of steps."""
    rows = await adapters.store.steps(run_id)
    expected = _Expected(rows)
    took = _seconds(rows, await adapters.store.events(run_id))
    alone = replace(adapters, model=None, sandbox=None, installer=None)
    driver = RunDriver(alone, 0, commits=expected, replayed=lambda state: took.get(state.version, 0.0))
    advance = _bounded(driver, expected)
    done = await loop(await adapters.store.first(run_id), advance)
    while expected.left and (done.state.status is Status.paused or takes_answer(done.state)):
        done = await loop(wake(done.state), advance)
    stored = await adapters.store.load(run_id)
    if done.state != stored:
        raise ReplayDiverged("the final state differs from the one that was stored")
    return done.state, len(rows)


def _seconds(rows: list[StepRow], events: list[Event]) -> dict[int, float]:
    """Return how long each step took, from its last event, by the version of the state before it."""
    names = {step.value for step in Step}
    ends = [event.data for event in events if event.phase is Phase.end and event.name in names]
    return {row.version - 1: float(str(data["seconds"])) for row, data in zip(rows, ends, strict=False)}


def _bounded(driver: RunDriver, expected: _Expected) -> Advance:
    async def advance(state: RunState, step: Step) -> StepAdvance:
        done = await driver.advance(state, step)
        return done if expected.left else done._replace(halt=done.halt or HaltReason.end_of_record)

    return advance


class _Expected:
    """Compares commits with the stored rows instead of writing them."""

    def __init__(self, rows: list[StepRow]) -> None:
        self._rows = rows
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._rows) - self._at

    async def commit(self, commit: StepCommit, fence: int) -> Control:  # noqa: ARG002  (nothing is written)
        row = self._rows[self._at]
        self._at += 1
        if (row.step, row.attempt) != (commit.step, commit.before.now.number):
            raise ReplayDiverged(f"attempt {row.attempt}: the run went to {row.step.value}, not to {commit.step.value}")
        if row.artifact != commit.artifact:
            raise ReplayDiverged(f"attempt {row.attempt}, {row.step.value}: its result differs from the one recorded")
        return Control.none
