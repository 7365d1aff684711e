"""Pass a person's messages and answers to a run, and continue a run that ended without a fix."""

from __future__ import annotations

import platform
from typing import NamedTuple

from redstart.app.run_status import load_status
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, check_models
from redstart.core.errors import ConfigError
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import HINT_LIMIT, Limits, Mode, Result, RunState, Spend, Status
from redstart.core.set_aside import list_claims
from redstart.engines.step_driver import wake_if_answered
from redstart.flow.child_runs import make_child_run_id
from redstart.flow.route import (
    ACCEPTABLE,
    begin_attempt,
    can_accept_answer,
    is_waiting_for_children,
    is_waiting_for_person,
)
from redstart.ports.store.port.runs import PersonWord
from redstart.steps.decide.retry import get_next_step
from redstart.toolkit.learning.stuck_runs import count_fruitless
from redstart.toolkit.repo.trees import is_alive

RETRYABLE_RESULTS = (Result.unsolved, Result.stuck, Result.capped, Result.refused)
"""Results that a further attempt may change. One that is partial can change only if some test was not fixed."""


class ResumeWish(NamedTuple):
    """What a person asks of a run besides resuming it."""

    say: str | None = None
    answer: PersonWord | None = None
    attempts: int | None = None
    usd: float | None = None
    minutes: float | None = None
    reflect: ReflectionPolicy | None = None
    force: bool = False
    """Whether to resume a run even if it was cancelled."""

    @property
    def limits(self) -> dict[str, float]:
        values = {"attempts": self.attempts, "usd": self.usd, "minutes": self.minutes}
        return {name: value for name, value in values.items() if value is not None}


class ResumeAnswer(NamedTuple):
    """The run that continues, and a note about it."""

    run_id: str
    note: str = ""
    driver: int | None = None
    """The process that already drives it, so that there is nothing to do here."""


async def handle_resume(app: AppContext, run_id: str, request: ResumeWish) -> ResumeAnswer:
    """Store the person's message. A run that ended without a fix continues as a new one, if there is a message or
    a limit.

    Raises `ConfigError`, and stores nothing, if the wish does not fit the state of the run.
    """
    state = await app.adapters.store.load(run_id)
    if not request.force and await load_status(app, run_id) is Status.cancelled:
        raise ConfigError(f"run {run_id} was cancelled", remedy=f"resume it anyway: redstart resume {run_id} --force")
    text = None if request.say is None else _clean_message(request.say)
    if request.answer is not None:
        return await _answer(app, state, request.answer, text)
    if state.status is Status.finished:
        is_unchanged = text is None and not request.limits and request.reflect is None
        return ResumeAnswer(run_id) if is_unchanged else await _go_further(app, state, request, text)
    if request.limits:
        raise ConfigError(
            f"run {run_id} has not finished and keeps the limits it began with",
            remedy=f"resume it without new limits: redstart resume {run_id}",
        )
    if request.reflect is not None and request.reflect is not state.spec.reflect:
        raise ConfigError(
            f"run {run_id} has not ended and continues with --reflect {state.spec.reflect.value}",
            remedy="use --reflect only to continue a run that has ended",
        )
    return ResumeAnswer(run_id) if text is None else await _store_message(app, state, text)


async def load_resumed_state(app: AppContext, run_id: str) -> RunState:
    """Load the run as a driver finds it: a run that waited and got its answer is running again."""
    return await wake_if_answered(app.adapters.store, await app.adapters.store.load(run_id))


def check_run_models(state: RunState, settings: Settings, *, keys: bool = True) -> None:
    """Raise `ConfigError` if a model of the run is not available: no other model replaces it."""
    name = settings.models.strong
    try:
        check_models(settings, keys=keys)
    except ConfigError as error:
        if not name:
            raise
        raise ConfigError(
            f"run {state.run_id} uses {name}, which is not available: {error}",
            remedy=f"{error.remedy}, or choose another model: redstart resume {state.run_id} -m MODEL",
        ) from error


async def _store_message(app: AppContext, state: RunState, text: str) -> ResumeAnswer:
    store, run_id = app.adapters.store, state.run_id
    await store.send_message(run_id, PersonWord.say, text, version=state.version)
    holder = await store.get_holder(run_id)
    if holder is None or holder.host != platform.node() or not is_alive(holder.pid):
        return ResumeAnswer(run_id)
    note = (
        f"saved. Process {holder.pid} works on run {run_id} and reads this before its next plan or patch.\n"
        f"If that process is not Redstart: redstart resume {run_id}"
    )
    return ResumeAnswer(run_id, note, holder.pid)


async def _answer(app: AppContext, state: RunState, answer: PersonWord, text: str | None) -> ResumeAnswer:
    asking_run = await _find_asking_run(app, state)
    if not can_accept_answer(asking_run):
        raise ConfigError(
            f"run {state.run_id} has not asked anything", remedy=f"see its state: redstart show {state.run_id}"
        )
    if answer is PersonWord.accept and text:
        raise ConfigError("--accept cannot be combined with --say", remedy="use --say with --reject, or leave it out")
    await app.adapters.store.send_message(asking_run.run_id, answer, text or "", version=asking_run.version)
    return ResumeAnswer(state.run_id)


async def _find_asking_run(app: AppContext, state: RunState) -> RunState:
    """Return the run itself, or the child run that asks: an answer to a run answers the child run that it waits for."""
    decision = state.now.decide
    for child_task in decision.errands if decision is not None and is_waiting_for_children(state) else ():
        child = await app.adapters.store.load(make_child_run_id(state.run_id, child_task.number))
        if is_waiting_for_person(child):
            return child
    return state


async def _go_further(app: AppContext, state: RunState, request: ResumeWish, text: str | None) -> ResumeAnswer:
    """Store a new run that continues after this one's last attempt, with the person's messages to this one."""
    is_retryable = state.result in RETRYABLE_RESULTS or state.has_unsolved
    if not is_retryable or state.spec.mode is Mode.improve:
        raise ConfigError(f"run {state.run_id} has finished: {state.reason}", remedy=_suggest_alternative(state))
    if state.spec.candidates is not None:
        raise ConfigError(
            f"run {state.run_id} has finished, and its candidates get no further attempts: {state.reason}",
            remedy="start a new run: redstart fix",
        )
    store = app.adapters.store
    limits = await _compute_new_limits(app, state, request)
    changed = {} if request.reflect is None else {"reflect": request.reflect}
    spec = state.spec.model_copy(update={"parent": state.run_id, "limits": limits, **changed})
    begun_state = state.model_copy(update={"set_aside": list_claims(state.set_aside)})
    next_state = begin_attempt(begun_state, get_next_step(state))
    updates = {"run_id": app.adapters.world.generate_id(), "spec": spec, "spend": Spend(), "version": 0, "seq": 0}
    new = next_state.model_copy(update=updates)
    (row,) = await store.list_runs(prefix=state.run_id, limit=1)
    await store.create(new, folder=row.folder, created=app.moment, options=row.options)
    messages = [message.text for message in await store.list_messages(state.run_id) if message.text]
    for message in (*messages, *([text] if text else [])):
        await store.send_message(new.run_id, PersonWord.say, message, version=0)
    attempts = f"attempts {new.now.number} to {limits.attempts}"
    if limits.attempts == new.now.number:
        attempts = f"attempt {new.now.number}"
    return ResumeAnswer(
        new.run_id, f"run {state.run_id} has finished; it continues as run {new.run_id} with {attempts}"
    )


async def _compute_new_limits(app: AppContext, state: RunState, request: ResumeWish) -> Limits:
    """Return the ended run's limits with the requested changes. Attempts count from the next one.

    If the run ended because too many attempts made no progress, allow as many again: the person has seen the earlier
    ones.
    """
    first_state = await app.adapters.store.load_first(state.run_id)
    original_attempts = state.spec.limits.attempts - (first_state.now.number - 1)
    attempts = state.now.number + (request.attempts or original_attempts)
    limits, vain = state.spec.limits, count_fruitless(state)
    stall_update = (
        {"stall": 2 * vain, "stall_warning": None} if limits.stall is not None and vain >= limits.stall else {}
    )
    return limits.model_copy(update={**request.limits, **stall_update, "attempts": attempts})


def _suggest_alternative(state: RunState) -> str:
    if state.result in ACCEPTABLE:
        return f"accept its patch with: redstart resume {state.run_id} --accept"
    if state.result is Result.verified:
        return f"its tests pass; apply its patch with: redstart apply {state.run_id}"
    if state.spec.mode is Mode.improve:
        return "start a new one: redstart improve"
    return "no attempt was made; start a new run: redstart fix"


def _clean_message(text: str) -> str:
    """Return the typed text in a form that any store accepts. Raises `ConfigError` if it is empty or too long."""
    message = text.strip().encode(errors="replace").decode()
    if not message:
        raise ConfigError("--say is empty", remedy="write what the run should know")
    if len(message) > HINT_LIMIT:
        raise ConfigError(f"--say is longer than {HINT_LIMIT} characters", remedy="shorten it")
    return message
