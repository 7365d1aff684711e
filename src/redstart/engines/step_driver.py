"""Execute one step and commit it under a fence. Every engine drives a run through this module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pydantic import BaseModel, JsonValue

from redstart.core.chat import Ask, Usage
from redstart.core.errors import ConfigError, Needs, StoreError
from redstart.core.events import Event, Phase, Progress
from redstart.core.learning import NewMemories
from redstart.core.run import ChildTask, Limits, Result, RunState, Spend, Status, Step
from redstart.core.run_status import Control, DriveStop, HaltReason, RunRow
from redstart.core.tasks import ImproveTask
from redstart.engines.journal import (
    JournaledErrands,
    JournaledForms,
    JournaledInstaller,
    JournaledLessons,
    JournaledModel,
    JournaledPerson,
    JournaledSandbox,
    JournalRecorder,
    find_reply,
)
from redstart.engines.lease import hold, resolve_error_stop
from redstart.engines.port import Engine
from redstart.engines.progress import StepWatch, WatchedModel
from redstart.engines.recall import JournaledMemory
from redstart.engines.step_summary import summarize_artifact
from redstart.flow.child_runs import create_child_run, make_child_run_id
from redstart.flow.loop import STEPS, StepAdvance
from redstart.flow.modes import MODES
from redstart.flow.route import can_accept_answer, is_waiting_for_children, settle, wake
from redstart.ports.bundle import Ports, announce_nothing
from redstart.ports.install.port import Installer
from redstart.ports.memory.port import Lessons, Memory
from redstart.ports.model.port import Model, TimedLedger
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.store.port.blobs import Blobs
from redstart.ports.store.port.journal import CallPlace, Journal
from redstart.ports.store.port.runs import RunClaim, StepCommit, Store
from redstart.ports.store.port.trees import Trees
from redstart.ports.world.port import World

AT_ONCE = 2
"""Maximum child runs that are driven at the same time."""
HALT_POLL_SECONDS = 1.0
"""Seconds between two checks whether a pausing driver must stop."""
BEGUN_ALIKE = 1000
"""Maximum runs to list by the prefix of a child run's ID: longer numbers begin with the same digits."""


class StepLedger(TimedLedger, Protocol):
    """A ledger that also adds up the cost of the step's calls."""

    def count(self, usage: Usage) -> None: ...

    @property
    def step_spend(self) -> Spend: ...


class Commits(Protocol):
    async def commit(self, commit: StepCommit, fence: int) -> Control: ...


def _never_halt() -> HaltReason:
    """Never stop the driver: only the store does."""
    return HaltReason.none


def _ignore_step(state: RunState, step: Step) -> None:
    """Ignore the start of a step."""
    del state, step


def _name_unknown_model(ask: Ask) -> str:
    """Name the model if the caller does not say which one is asked."""
    del ask
    return "the model"


@dataclass(frozen=True, slots=True)
class Adapters:
    """The adapters of a driver. Without a model it may only act, without a sandbox only think."""

    store: Store
    journal: Journal
    blobs: Blobs
    trees: Trees
    memory: Memory
    lessons: Lessons
    world: World
    model: Model | None
    writer: str
    """The name of the model that is asked for edits, as in its answers; empty if there is none."""
    sandbox: Sandbox | None
    installer: Installer | None
    ledger: Callable[[Limits, Spend], StepLedger]
    budgeted: Callable[[Model, TimedLedger], Model]
    """Wraps a model so that it reserves and settles with the ledger."""
    listen: Callable[[Event], None]
    get_halt_reason: Callable[[], HaltReason] = _never_halt
    """Called after each commit: returns the reason to stop there, if any."""
    before_step: Callable[[RunState, Step], None] = _ignore_step
    """Called before each step with the committed state."""
    progress: Callable[[Progress], None] | None = None
    """Called with the progress of a step, which is not stored."""
    get_model_name: Callable[[Ask], str] = _name_unknown_model
    """Returns the display name of the model that a question goes to."""
    supervised: bool = False
    """Whether a supervisor has the run driven again if this drive stops before the end."""


async def drive(adapters: Adapters, claim: RunClaim, engine: Engine, last_step: Step | None = None) -> StepAdvance:
    """Continue a claimed run until it ends, waits, or `last_step` is committed. Raises the errors of the adapters.

    A run that waits for a person continues if they have answered. If the run waits for child runs, those are driven
    first. The drive stops at once if a person cancels the run. At the end the run is released with its status.
    """
    if last_step is not None and last_step not in MODES[claim.state.spec.mode]:
        raise ConfigError(f"{claim.state.spec.mode.value} has no step {last_step.value}")
    stop: DriveStop | None = None
    try:
        result = await hold(adapters.store, claim, _drive(adapters, claim, engine, last_step))
        stop = _resolve_stop(result, supervised=adapters.supervised)
        return result
    except BaseException as error:
        stop = resolve_error_stop(error, supervised=adapters.supervised)
        raise
    finally:
        with suppress(StoreError):  # The release is only informative; the error that ended the drive matters more.
            await adapters.store.release(claim.state.run_id, claim.fence, stop)


async def _drive(adapters: Adapters, claim: RunClaim, engine: Engine, last_step: Step | None) -> StepAdvance:
    driver = RunDriver(adapters, claim.fence, None if _is_only_waiting(claim.state) else last_step)
    result = await engine(await wake_if_answered(adapters.store, claim.state), driver.advance)
    while not result.halt and is_waiting_for_children(result.state):
        if halt := await drive_child_runs(adapters, result.state, engine, last_step):
            return StepAdvance(result.state, halt)
        result = await engine(wake(result.state), driver.advance)
    return result


def _resolve_stop(result: StepAdvance, *, supervised: bool) -> DriveStop | None:
    """Return how the run stands after a drive without an error; None if its own state says it."""
    state, halt = result.state, result.halt
    if state.status in (Status.finished, Status.needs_input):
        return None
    if halt is HaltReason.errand_waits:
        return DriveStop(Status.needs_input, "a child run needs input")
    if supervised and (halt.needed or halt is HaltReason.drain):
        return DriveStop(Status.queued)
    return DriveStop(
        Status.paused, f"stopped after {state.last.value}" if halt is HaltReason.until and state.last else ""
    )


def _is_only_waiting(state: RunState) -> bool:
    """Return whether child runs do all the steps of the run except its decisions, so that `until` applies to them."""
    return state.spec.has_cycles


async def drive_child_runs(adapters: Adapters, parent: RunState, engine: Engine, last_step: Step | None) -> HaltReason:
    """Drive the child runs that this run waits for, starting those that are new. Return why the run cannot continue.

    Child runs may run concurrently. An error of one is raised when the others have ended.
    """
    decision = parent.now.decide
    child_tasks = decision.errands if decision else ()
    pause = parent.spec.get_task(ImproveTask).pause if parent.spec.has_cycles else 0.0
    if (
        pause
        and await _is_between_cycles(adapters, parent, child_tasks)
        and (halt := await _wait_or_halt(adapters, pause))
    ):
        return halt
    slots = asyncio.Semaphore(AT_ONCE)
    halt_reasons: list[HaltReason] = []
    is_race = parent.spec.candidates is not None and not parent.spec.candidates.choose
    if is_race and await _stop_others(adapters, parent):
        return HaltReason.none

    async def drive_child(child_task: ChildTask) -> HaltReason:
        async with slots:
            if halt_reasons:
                return halt_reasons[0]
            if is_race and _is_won(await _list_child_rows(adapters, parent)):
                return HaltReason.none
            child = await _load_or_create_child(adapters, parent, child_task)
            if child.status is Status.finished:
                return HaltReason.none
            row = MODES[child.spec.mode]
            claim = await adapters.store.claim(child.run_id)
            result = await drive(adapters, claim, engine, last_step if last_step in row else None)
            if _rank(result.halt) == 0:
                # A stop of one child run means all of them: those without a driver get none.
                halt_reasons.append(result.halt)
            return result.halt or (
                HaltReason.none if result.state.status is Status.finished else HaltReason.errand_waits
            )

    if is_race:
        outcomes = await _race(adapters, parent, [drive_child(child_task) for child_task in child_tasks])
        if await _stop_others(adapters, parent):
            return HaltReason.none
    else:
        outcomes = await asyncio.gather(
            *(drive_child(child_task) for child_task in child_tasks), return_exceptions=True
        )
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return min((outcome for outcome in outcomes if isinstance(outcome, HaltReason)), key=_rank, default=HaltReason.none)


async def _race(
    adapters: Adapters, parent: RunState, drives: Sequence[Coroutine[None, None, HaltReason]]
) -> list[HaltReason | BaseException]:
    """Drive candidates until one of them is verified or all have stopped. The others are interrupted."""
    tasks = [asyncio.create_task(drive) for drive in drives]
    pending = set(tasks)
    try:
        while pending and not _is_won(await _list_child_rows(adapters, parent)):
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    return outcomes


async def _stop_others(adapters: Adapters, parent: RunState) -> bool:
    """Cancel the other candidates if one is verified. Return whether one is."""
    rows = await _list_child_rows(adapters, parent)
    if not _is_won(rows):
        return False
    for row in rows:
        if row.status is not Status.finished:
            await adapters.store.control(row.run_id, Control.cancel)
    return True


async def _list_child_rows(adapters: Adapters, parent: RunState) -> list[RunRow]:
    return await adapters.store.list_runs(prefix=f"{parent.run_id}.", limit=BEGUN_ALIKE)


def _is_won(rows: Sequence[RunRow]) -> bool:
    return any(row.result == Result.verified.value for row in rows)


def _rank(halt: HaltReason) -> int:
    """Rank the halts of several child runs: a stop comes first, and a child run that waits for a person never delays
    the others.
    """
    ranks = {
        HaltReason.needs_think: 1,
        HaltReason.needs_act: 1,
        HaltReason.until: 2,
        HaltReason.errand_waits: 3,
        HaltReason.none: 4,
    }
    return ranks.get(halt, 0)


async def _is_between_cycles(adapters: Adapters, parent: RunState, child_tasks: Sequence[ChildTask]) -> bool:
    """Return whether the pause between two improvements is due: not before the first, and not during one."""
    if parent.work.begun <= 1:
        return False
    return not any(
        [await _has_run(adapters, make_child_run_id(parent.run_id, child_task.number)) for child_task in child_tasks]
    )


async def _wait_or_halt(adapters: Adapters, seconds: float) -> HaltReason:
    """Wait for the given time, or until the driver must stop. Return the reason to stop, if any."""
    ends = adapters.world.monotonic() + seconds
    while (remaining := ends - adapters.world.monotonic()) > 0:
        if halt := adapters.get_halt_reason():
            return halt
        await asyncio.sleep(min(remaining, HALT_POLL_SECONDS))
    return HaltReason.none


async def _load_or_create_child(adapters: Adapters, parent: RunState, child_task: ChildTask) -> RunState:
    """Load the child run, or create it if it does not exist yet."""
    child = create_child_run(parent, child_task)
    if await _has_run(adapters, child.run_id):
        return await adapters.store.load(child.run_id)
    # Without a folder: the last run of a folder is the one that the user began.
    moment = datetime.fromtimestamp(adapters.world.now(), UTC)
    await adapters.store.create(child, folder="", created=moment)
    return child


async def _has_run(adapters: Adapters, run_id: str) -> bool:
    return any(row.run_id == run_id for row in await adapters.store.list_runs(prefix=run_id, limit=BEGUN_ALIKE))


async def wake_if_answered(store: Store, state: RunState) -> RunState:
    """Return the state to continue from: a run that a person has answered continues."""
    if not can_accept_answer(state) or find_reply(state, await store.list_messages(state.run_id)) is None:
        return state
    return wake(state)


class RunDriver:
    """Holds a run by its fence and executes one step at a time. With `replayed_seconds`, it makes no call or write."""

    def __init__(
        self,
        adapters: Adapters,
        fence: int,
        last_step: Step | None = None,
        *,
        commits: Commits | None = None,
        replayed_seconds: Callable[[RunState], float] | None = None,
    ) -> None:
        self._adapters, self._fence, self._last_step = adapters, fence, last_step
        self._commits: Commits = commits or adapters.store
        # In a replay: returns how long the step after a state took.
        self._get_replayed_seconds = replayed_seconds

    async def advance(self, state: RunState, step: Step) -> StepAdvance:
        start_time = self._adapters.world.monotonic()
        self._adapters.before_step(state, step)
        stream = _Stream(state, self._adapters)
        if state.version == 0:
            stream.emit(
                "run", Phase.start, mode=state.spec.mode.value, goal=state.spec.goal[:200], repo=state.spec.repo
            )
        stream.emit(step.value, Phase.start)
        recorder = self._create_recorder(state, step, stream)
        ledger = self._adapters.ledger(state.spec.limits, state.spend)
        try:
            artifact = await STEPS[step](state, self._create_ports(state, step, stream, recorder, ledger))
        except Needs as error:
            return StepAdvance(state, HaltReason.needs_think if error.privilege == "think" else HaltReason.needs_act)
        seconds = self._measure_seconds(state, start_time)
        step_spend = ledger.step_spend.model_copy(update={"seconds": seconds, "handovers": recorder.handovers})
        new_state = self._settle_state(state, step, artifact, step_spend)
        cost_data: dict[str, JsonValue] = {"tokens": new_state.spend.tokens, "usd": round(new_state.spend.usd, 6)}
        if recorder.handovers:
            cost_data["handovers"] = recorder.handovers
        stream.emit(step.value, Phase.end, seconds=seconds, **cost_data, **summarize_artifact(artifact))
        if new_state.status is not Status.running:
            stream.emit("run", Phase.end, **_summarize_ending(new_state))
        new_state = new_state.model_copy(update={"seq": state.seq + len(stream.events)})
        memories = artifact if isinstance(artifact, NewMemories) else None
        commit = StepCommit(state, new_state, step, artifact.model_dump_json(), stream.events, memories)
        control = await self._commits.commit(commit, self._fence)
        return StepAdvance(new_state, self._choose_halt_reason(step, control))

    def _choose_halt_reason(self, step: Step, control: Control) -> HaltReason:
        if control is not Control.none:
            return HaltReason(control.value)
        return HaltReason.until if step is self._last_step else self._adapters.get_halt_reason()

    def _create_recorder(self, state: RunState, step: Step, stream: _Stream) -> JournalRecorder:
        def report_discard(call: str, count: int) -> None:
            stream.emit(step.value, Phase.note, discarded=count, since=call)

        # An attempt decides again after each answer, maybe more than once: each decision has its own records.
        suffix = f"@{state.version}" if step is state.last else ""
        call = CallPlace(state.run_id, state.now.number, f"{step.value}{suffix}", 0)
        journal, blobs = self._adapters.journal, self._adapters.blobs
        return JournalRecorder(
            journal,
            blobs,
            call,
            self._fence,
            is_replaying=self._get_replayed_seconds is not None,
            on_discard=report_discard,
        )

    def _create_ports(
        self, state: RunState, step: Step, stream: _Stream, recorder: JournalRecorder, ledger: StepLedger
    ) -> Ports:
        def note(**data: JsonValue) -> None:
            stream.emit(step.value, Phase.note, **data)

        parts = self._adapters
        model = parts.budgeted(parts.model, ledger) if parts.model else None
        idle = Progress(state.run_id, state.now.number, step.value)
        watch = StepWatch(idle, parts.progress) if parts.progress else None
        return Ports(
            model=JournaledModel(
                WatchedModel(model, watch, parts.get_model_name) if model and watch else model,
                recorder,
                parts.blobs,
                ledger,
            ),
            sandbox=JournaledSandbox(
                parts.sandbox, recorder, parts.blobs, watch.report_execution if watch else nullcontext
            ),
            memory=JournaledMemory(parts.memory, recorder, ledger, note, can_think=parts.model is not None),
            lessons=JournaledLessons(parts.lessons, recorder),
            person=JournaledPerson(parts.store, state, recorder),
            child_runs=JournaledErrands(parts.store, parts.journal, state, recorder),
            installer=JournaledInstaller(parts.installer, recorder),
            forms=JournaledForms(parts.store, parts.writer if model else None, state.spec.tenant, recorder),
            blobs=parts.blobs,
            trees=parts.trees,
            note=note,
            announce=watch.announce if watch else announce_nothing,
        )

    def _measure_seconds(self, state: RunState, start_time: float) -> float:
        """Return how long the step took.

        The step's commit stores it in its last event: a separate record would be a second durable write per step.
        """
        if self._get_replayed_seconds is not None:
            return self._get_replayed_seconds(state)
        return round(self._adapters.world.monotonic() - start_time, 3)

    @staticmethod
    def _settle_state(state: RunState, step: Step, artifact: BaseModel, step_spend: Spend) -> RunState:
        return settle(state.model_copy(update={"spend": state.spend.add(step_spend)}), step, artifact)


def _summarize_ending(state: RunState) -> dict[str, JsonValue]:
    spend = state.spend
    return {
        "status": state.status.value,
        "result": state.result.value if state.result else "",
        "reason": state.reason,
        "attempts": state.now.number,
        "calls": spend.calls,
        "tokens": spend.tokens,
        "usd": round(spend.usd, 6),
        "seconds": spend.seconds,
    }


class _Stream:
    """The events of one step: passed to the listener at once, and kept for the commit."""

    def __init__(self, state: RunState, adapters: Adapters) -> None:
        self._state, self._adapters = state, adapters
        self.events: list[Event] = []

    def emit(self, name: str, phase: Phase, **data: JsonValue) -> None:
        event = Event(
            run=self._state.run_id,
            seq=self._state.seq + len(self.events),
            time=self._adapters.world.now(),
            attempt=self._state.now.number,
            name=name,
            phase=phase,
            data=data,
        )
        self.events.append(event)
        self._adapters.listen(event)
