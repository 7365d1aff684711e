"""Replay a finished run from its journal alone: no model, no sandbox, no writes."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from redstart.core.errors import ReplayDiverged
from redstart.core.events import Event, Phase
from redstart.core.formats import describe_recorded_version, get_current_version
from redstart.core.run import RunState, Status, Step
from redstart.core.run_status import Control, HaltReason
from redstart.engines.step_driver import Adapters, RunDriver
from redstart.flow.loop import Advance, StepAdvance, run_loop
from redstart.flow.route import can_accept_answer, wake
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
    records = await adapters.journal.list_records(run_id)
    try:
        state, steps = await _replay(adapters, run_id)
    except ReplayDiverged as error:
        other_versions = sorted(
            {
                describe_recorded_version(record.recorded_by)
                for record in records
                if record.recorded_by != get_current_version()
            }
        )
        if not other_versions:
            raise
        raise ReplayDiverged(
            f"run {run_id} was recorded by {' and '.join(other_versions)}; "
            f"{describe_recorded_version(get_current_version())} differs at {error}",
            remedy=f"replay it with {other_versions[-1]}",
        ) from error
    return ReplayResult(state, steps, sum(record.kind != "handover" for record in records))


async def _replay(adapters: Adapters, run_id: str) -> tuple[RunState, int]:
    """Return the final state and the number of steps."""
    rows = await adapters.store.list_steps(run_id)
    expected = _Expected(rows)
    step_seconds = _get_step_seconds(rows, await adapters.store.list_events(run_id))
    replay_adapters = replace(adapters, model=None, sandbox=None, installer=None)
    driver = RunDriver(
        replay_adapters, 0, commits=expected, replayed_seconds=lambda state: step_seconds.get(state.version, 0.0)
    )
    advance = _stop_at_end(driver, expected)
    first_state = await adapters.store.load_first(run_id)
    # A candidate may have been stopped before its first step was committed.
    result = await run_loop(first_state, advance) if rows else StepAdvance(first_state)
    while expected.remaining and (result.state.status is Status.paused or can_accept_answer(result.state)):
        result = await run_loop(wake(result.state), advance)
    stored = await adapters.store.load(run_id)
    if result.state != stored:
        raise ReplayDiverged("the final state differs from the one that was stored")
    return result.state, len(rows)


def _get_step_seconds(rows: list[StepRow], events: list[Event]) -> dict[int, float]:
    """Return how long each step took, from its last event, by the version of the state before it."""
    names = {step.value for step in Step}
    ends = [event.data for event in events if event.phase is Phase.end and event.name in names]
    return {row.version - 1: float(str(data["seconds"])) for row, data in zip(rows, ends, strict=False)}


def _stop_at_end(driver: RunDriver, expected: _Expected) -> Advance:
    async def advance(state: RunState, step: Step) -> StepAdvance:
        result = await driver.advance(state, step)
        return result if expected.remaining else result._replace(halt=result.halt or HaltReason.end_of_record)

    return advance


class _Expected:
    """Compares commits with the stored rows instead of writing them."""

    def __init__(self, rows: list[StepRow]) -> None:
        self._rows = rows
        self._index = 0

    @property
    def remaining(self) -> int:
        return len(self._rows) - self._index

    async def commit(self, commit: StepCommit, fence: int) -> Control:  # noqa: ARG002  (nothing is written)
        row = self._rows[self._index]
        self._index += 1
        if (row.step, row.attempt) != (commit.step, commit.before.now.number):
            raise ReplayDiverged(f"attempt {row.attempt}: the run went to {row.step.value}, not to {commit.step.value}")
        if row.artifact != commit.artifact:
            raise ReplayDiverged(f"attempt {row.attempt}, {row.step.value}: its result differs from the one recorded")
        return Control.none
