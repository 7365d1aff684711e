"""Execute one step and commit it under a fence. Every engine drives a run through this module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from pydantic import BaseModel, JsonValue

from redstart.core.chat import Ask, Usage
from redstart.core.errors import ConfigError, Needs, StoreError
from redstart.core.events import Event, Phase, Progress
from redstart.core.learning import NewMemories
from redstart.core.run import ChildTask, Limits, RunState, Spend, Status, Step
from redstart.core.standing import Control, DriveStop, HaltReason
from redstart.core.tasks import ImproveTask
from redstart.engines.brief import brief
from redstart.engines.journal import (
    JournaledErrands,
    JournaledForms,
    JournaledInstaller,
    JournaledLessons,
    JournaledModel,
    JournaledPerson,
    JournaledSandbox,
    JournalRecorder,
    reply_to,
)
from redstart.engines.lease import hold, stop_of_error
from redstart.engines.port import Engine
from redstart.engines.progress import StepWatch, WatchedModel
from redstart.engines.recall import JournaledMemory
from redstart.flow.errands import begun, errand_id
from redstart.flow.loop import STEPS, StepAdvance
from redstart.flow.modes import MODES
from redstart.flow.route import settle, takes_answer, waits_for_errands, wake
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
REST = 1.0
"""Seconds between two checks whether a pausing driver must stop."""
BEGUN_ALIKE = 1000
"""Maximum runs to list by the prefix of a child run's ID: longer numbers begin with the same digits."""


class StepLedger(TimedLedger, Protocol):
    """A ledger that also adds up the cost of the step's calls."""

    def count(self, usage: Usage) -> None: ...

    @property
    def spend_of_step(self) -> Spend: ...


class Commits(Protocol):
    async def commit(self, commit: StepCommit, fence: int) -> Control: ...


def _never() -> HaltReason:
    """Never stop the driver: only the store does."""
    return HaltReason.none


def _unwatched(state: RunState, step: Step) -> None:
    """Ignore the start of a step."""
    del state, step


def _some_model(ask: Ask) -> str:
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
    halting: Callable[[], HaltReason] = _never
    """Called after each commit: returns the reason to stop there, if any."""
    before_step: Callable[[RunState, Step], None] = _unwatched
    """Called before each step with the committed state."""
    progress: Callable[[Progress], None] | None = None
    """Called with the progress of a step, which is not stored."""
    asked_model: Callable[[Ask], str] = _some_model
    """Returns the display name of the model that a question goes to."""
    supervised: bool = False
    """Whether a supervisor has the run driven again if this drive stops before the end."""


async def drive(adapters: Adapters, claim: RunClaim, engine: Engine, until: Step | None = None) -> StepAdvance:
    """Continue a claimed run until it ends, waits, or `until` is committed. Raises what the machinery raises.

    A run that waits for a person continues if they have answered. A run that waits for child runs has them driven
    first. The drive stops at once if a person cancels the run. At the end the run is released with its status.
    """
    if until is not None and until not in MODES[claim.state.spec.mode]:
        raise ConfigError(f"{claim.state.spec.mode.value} has no step {until.value}")
    stop: DriveStop | None = None
    try:
        done = await hold(adapters.store, claim, _drive(adapters, claim, engine, until))
        stop = _stop_of(done, supervised=adapters.supervised)
        return done
    except BaseException as error:
        stop = stop_of_error(error, supervised=adapters.supervised)
        raise
    finally:
        with suppress(StoreError):  # The release is only informative; the error that ended the drive matters more.
            await adapters.store.release(claim.state.run_id, claim.fence, stop)


async def _drive(adapters: Adapters, claim: RunClaim, engine: Engine, until: Step | None) -> StepAdvance:
    driver = RunDriver(adapters, claim.fence, None if _only_waits(claim.state) else until)
    done = await engine(await awake(adapters.store, claim.state), driver.advance)
    while not done.halt and waits_for_errands(done.state):
        if halt := await drive_errands(adapters, done.state, engine, until):
            return StepAdvance(done.state, halt)
        done = await engine(wake(done.state), driver.advance)
    return done


def _stop_of(done: StepAdvance, *, supervised: bool) -> DriveStop | None:
    """Return how the run stands after a drive without an error; None if its own state says it."""
    state, halt = done.state, done.halt
    if state.status in (Status.finished, Status.needs_input):
        return None
    if halt is HaltReason.errand_waits:
        return DriveStop(Status.needs_input, "a child run needs input")
    if supervised and (halt.needed or halt is HaltReason.drain):
        return DriveStop(Status.queued)
    return DriveStop(
        Status.paused, f"stopped after {state.last.value}" if halt is HaltReason.until and state.last else ""
    )


def _only_waits(state: RunState) -> bool:
    """Return whether child runs do all the steps of the run except its decisions, so that `until` applies to them."""
    return state.spec.begins_cycles


async def drive_errands(adapters: Adapters, parent: RunState, engine: Engine, until: Step | None) -> HaltReason:
    """Drive the child runs that this run waits for, starting those that are new. Return why the run cannot continue.

    Child runs may run concurrently. An error of one is raised when the others have ended.
    """
    decided = parent.now.decide
    errands = decided.errands if decided else ()
    pause = parent.spec.task_of(ImproveTask).pause if parent.spec.begins_cycles else 0.0
    if pause and await _is_between_cycles(adapters, parent, errands) and (halt := await _rest(adapters, pause)):
        return halt
    slots = asyncio.Semaphore(AT_ONCE)
    stopped: list[HaltReason] = []

    async def one(errand: ChildTask) -> HaltReason:
        async with slots:
            if stopped:
                return stopped[0]
            child = await _begun(adapters, parent, errand)
            if child.status is Status.finished:
                return HaltReason.none
            row = MODES[child.spec.mode]
            claim = await adapters.store.claim(child.run_id)
            done = await drive(adapters, claim, engine, until if until in row else None)
            if _rank(done.halt) == 0:
                # A stop of one child run means all of them: those without a driver get none.
                stopped.append(done.halt)
            return done.halt or (HaltReason.none if done.state.status is Status.finished else HaltReason.errand_waits)

    told = await asyncio.gather(*(one(errand) for errand in errands), return_exceptions=True)
    for each in told:
        if isinstance(each, BaseException):
            raise each
    return min((each for each in told if isinstance(each, HaltReason)), key=_rank, default=HaltReason.none)


def _rank(halt: HaltReason) -> int:
    """Rank the halts of several child runs: a stop counts first, and waiting for a person holds up no other."""
    known = {
        HaltReason.needs_think: 1,
        HaltReason.needs_act: 1,
        HaltReason.until: 2,
        HaltReason.errand_waits: 3,
        HaltReason.none: 4,
    }
    return known.get(halt, 0)


async def _is_between_cycles(adapters: Adapters, parent: RunState, errands: Sequence[ChildTask]) -> bool:
    """Return whether the pause between two improvements is due: not before the first, and not during one."""
    if parent.work.begun <= 1:
        return False
    return not any([await _is_there(adapters, errand_id(parent.run_id, errand.number)) for errand in errands])


async def _rest(adapters: Adapters, seconds: float) -> HaltReason:
    """Wait for the given time, or until the driver must stop. Return the reason to stop, if any."""
    ends = adapters.world.monotonic() + seconds
    while (left := ends - adapters.world.monotonic()) > 0:
        if halt := adapters.halting():
            return halt
        await asyncio.sleep(min(left, REST))
    return HaltReason.none


async def _begun(adapters: Adapters, parent: RunState, errand: ChildTask) -> RunState:
    """Load the child run, or create it if it does not exist yet."""
    fresh = begun(parent, errand)
    if await _is_there(adapters, fresh.run_id):
        return await adapters.store.load(fresh.run_id)
    # Without a folder: the last run of a folder is the one that the user began.
    moment = datetime.fromtimestamp(adapters.world.now(), UTC)
    await adapters.store.create(fresh, folder="", created=moment)
    return fresh


async def _is_there(adapters: Adapters, run_id: str) -> bool:
    return any(row.run_id == run_id for row in await adapters.store.runs(prefix=run_id, limit=BEGUN_ALIKE))


async def awake(store: Store, state: RunState) -> RunState:
    """Return the state to continue from: a run that a person has answered continues."""
    if not takes_answer(state) or reply_to(state, await store.told(state.run_id)) is None:
        return state
    return wake(state)


class RunDriver:
    """Holds a run by its fence and executes one step at a time. With `replayed_seconds`, it makes no call or write."""

    def __init__(
        self,
        adapters: Adapters,
        fence: int,
        until: Step | None = None,
        *,
        commits: Commits | None = None,
        replayed: Callable[[RunState], float] | None = None,
    ) -> None:
        self._adapters, self._fence, self._until = adapters, fence, until
        self._commits: Commits = commits or adapters.store
        # In a replay: returns how long the step after a state took.
        self._replayed = replayed

    async def advance(self, state: RunState, step: Step) -> StepAdvance:
        started = self._adapters.world.monotonic()
        self._adapters.before_step(state, step)
        stream = _Stream(state, self._adapters)
        if state.version == 0:
            stream.tell(
                "run", Phase.start, mode=state.spec.mode.value, goal=state.spec.goal[:200], repo=state.spec.repo
            )
        stream.tell(step.value, Phase.start)
        recorder = self._recorder(state, step, stream)
        ledger = self._adapters.ledger(state.spec.limits, state.spend)
        try:
            artifact = await STEPS[step](state, self._ports(state, step, stream, recorder, ledger))
        except Needs as needs:
            return StepAdvance(state, HaltReason.needs_think if needs.privilege == "think" else HaltReason.needs_act)
        seconds = self._seconds(state, started)
        after = self._settled(state, step, artifact, ledger.spend_of_step, seconds)
        spent: dict[str, JsonValue] = {"tokens": after.spend.tokens, "usd": round(after.spend.usd, 6)}
        stream.tell(step.value, Phase.end, seconds=seconds, **spent, **brief(artifact))
        if after.status is not Status.running:
            stream.tell("run", Phase.end, **_ending(after))
        after = after.model_copy(update={"seq": state.seq + len(stream.events)})
        remembered = artifact if isinstance(artifact, NewMemories) else None
        commit = StepCommit(state, after, step, artifact.model_dump_json(), stream.events, remembered)
        control = await self._commits.commit(commit, self._fence)
        return StepAdvance(after, self._halt(step, control))

    def _halt(self, step: Step, control: Control) -> HaltReason:
        if control is not Control.none:
            return HaltReason(control.value)
        return HaltReason.until if step is self._until else self._adapters.halting()

    def _recorder(self, state: RunState, step: Step, stream: _Stream) -> JournalRecorder:
        def discarded(call: str, count: int) -> None:
            stream.tell(step.value, Phase.note, discarded=count, since=call)

        # An attempt decides again after each answer, maybe more than once: each decision has its own records.
        again = f"@{state.version}" if step is state.last else ""
        call = CallPlace(state.run_id, state.now.number, f"{step.value}{again}", 0)
        journal, blobs = self._adapters.journal, self._adapters.blobs
        return JournalRecorder(
            journal, blobs, call, self._fence, replaying=self._replayed is not None, on_discard=discarded
        )

    def _ports(
        self, state: RunState, step: Step, stream: _Stream, recorder: JournalRecorder, ledger: StepLedger
    ) -> Ports:
        def note(**data: JsonValue) -> None:
            stream.tell(step.value, Phase.note, **data)

        parts = self._adapters
        model = parts.budgeted(parts.model, ledger) if parts.model else None
        watch = StepWatch(state, step, parts.progress) if parts.progress else None
        return Ports(
            model=JournaledModel(
                WatchedModel(model, watch, parts.asked_model) if model and watch else model,
                recorder,
                parts.blobs,
                ledger,
            ),
            sandbox=JournaledSandbox(parts.sandbox, recorder, parts.blobs, watch.running if watch else nullcontext),
            memory=JournaledMemory(parts.memory, recorder, ledger, note, thinks=parts.model is not None),
            lessons=JournaledLessons(parts.lessons, recorder),
            person=JournaledPerson(parts.store, state, recorder),
            errands=JournaledErrands(parts.store, state, recorder),
            installer=JournaledInstaller(parts.installer, recorder),
            forms=JournaledForms(parts.store, parts.writer if model else None, state.spec.tenant, recorder),
            blobs=parts.blobs,
            trees=parts.trees,
            note=note,
            announce=watch.announce if watch else announce_nothing,
        )

    def _seconds(self, state: RunState, started: float) -> float:
        """Return how long the step took.

        The step's commit stores it in its last event: a separate record would be a second durable write per step.
        """
        if self._replayed is not None:
            return self._replayed(state)
        return round(self._adapters.world.monotonic() - started, 3)

    @staticmethod
    def _settled(state: RunState, step: Step, artifact: BaseModel, spent: Spend, seconds: float) -> RunState:
        spend = state.spend.plus(spent.model_copy(update={"seconds": seconds}))
        return settle(state.model_copy(update={"spend": spend}), step, artifact)


def _ending(state: RunState) -> dict[str, JsonValue]:
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

    def tell(self, name: str, phase: Phase, **data: JsonValue) -> None:
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
