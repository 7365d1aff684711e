"""Pass a person's messages and answers to a run, and continue a run that ended without a fix."""

from __future__ import annotations

import platform
from typing import NamedTuple

from redstart.app.settings import Settings
from redstart.app.standing import status_now
from redstart.app.wire import AppContext, check_models
from redstart.core.errors import ConfigError
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import HINT_LIMIT, Limits, Mode, Result, RunState, Spend, Status
from redstart.engines.drive import awake
from redstart.flow.errands import errand_id
from redstart.flow.route import begin, takes_answer, waits_for_a_person, waits_for_errands
from redstart.ports.store.port.runs import PersonWord
from redstart.steps.decide.retry import further
from redstart.toolkit.learning.stuck import fruitless
from redstart.toolkit.repo.trees import alive

RED = (Result.unsolved, Result.stuck, Result.capped, Result.refused)
"""Results that a further attempt may change."""


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
        asked = {"attempts": self.attempts, "usd": self.usd, "minutes": self.minutes}
        return {name: value for name, value in asked.items() if value is not None}


class ResumeAnswer(NamedTuple):
    """The run that continues, and a note about it."""

    run_id: str
    note: str = ""
    driver: int | None = None
    """The process that already drives it, so that there is nothing to do here."""


async def hear(house: AppContext, run_id: str, wish: ResumeWish) -> ResumeAnswer:
    """Store the person's message. A run that ended without a fix continues as a new one, if there is a message or
    a limit.

    Raises `ConfigError`, and stores nothing, if the wish does not fit the state of the run.
    """
    state = await house.adapters.store.load(run_id)
    if not wish.force and await status_now(house, run_id) is Status.cancelled:
        raise ConfigError(f"run {run_id} was cancelled", remedy=f"resume it anyway: redstart resume {run_id} --force")
    text = None if wish.say is None else _words(wish.say)
    if wish.answer is not None:
        return await _answer(house, state, wish.answer, text)
    if state.status is Status.finished:
        plain = text is None and not wish.limits and wish.reflect is None
        return ResumeAnswer(run_id) if plain else await _go_further(house, state, wish, text)
    if wish.limits:
        raise ConfigError(
            f"run {run_id} has not finished and keeps the limits it began with",
            remedy=f"resume it without new limits: redstart resume {run_id}",
        )
    if wish.reflect is not None and wish.reflect is not state.spec.reflect:
        raise ConfigError(
            f"run {run_id} has not ended and continues with --reflect {state.spec.reflect.value}",
            remedy="use --reflect only to continue a run that has ended",
        )
    return ResumeAnswer(run_id) if text is None else await _say(house, state, text)


async def standing(house: AppContext, run_id: str) -> RunState:
    """Load the run as a driver finds it: a run that waited and got its answer is running again."""
    return await awake(house.adapters.store, await house.adapters.store.load(run_id))


def check_models_of(state: RunState, settings: Settings, *, keys: bool = True) -> None:
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


async def _say(house: AppContext, state: RunState, text: str) -> ResumeAnswer:
    store, run_id = house.adapters.store, state.run_id
    await store.tell(run_id, PersonWord.say, text, version=state.version)
    holder = await store.holder(run_id)
    if holder is None or holder.host != platform.node() or not alive(holder.pid):
        return ResumeAnswer(run_id)
    note = (
        f"saved. Process {holder.pid} drives run {run_id} and reads it before its next plan or patch.\n"
        f"If that process is not Redstart: redstart resume {run_id}"
    )
    return ResumeAnswer(run_id, note, holder.pid)


async def _answer(house: AppContext, state: RunState, word: PersonWord, text: str | None) -> ResumeAnswer:
    asks = await _who_asks(house, state)
    if not takes_answer(asks):
        raise ConfigError(
            f"run {state.run_id} has not asked anything", remedy=f"see its state: redstart show {state.run_id}"
        )
    if word is PersonWord.accept and text:
        raise ConfigError("--accept cannot be combined with --say", remedy="use --say with --reject, or leave it out")
    await house.adapters.store.tell(asks.run_id, word, text or "", version=asks.version)
    return ResumeAnswer(state.run_id)


async def _who_asks(house: AppContext, state: RunState) -> RunState:
    """Return the run itself, or the child run that asks: an answer to a run answers the child run that it waits for."""
    asked = state.now.decide
    for errand in asked.errands if asked is not None and waits_for_errands(state) else ():
        child = await house.adapters.store.load(errand_id(state.run_id, errand.number))
        if waits_for_a_person(child):
            return child
    return state


async def _go_further(house: AppContext, state: RunState, wish: ResumeWish, text: str | None) -> ResumeAnswer:
    """Store a new run that continues after this one's last attempt, with the person's messages to this one."""
    if state.result not in RED or state.spec.mode is Mode.improve:
        raise ConfigError(f"run {state.run_id} has finished: {state.reason}", remedy=_instead(state))
    store = house.adapters.store
    limits = await _anew(house, state, wish)
    changed = {} if wish.reflect is None else {"reflect": wish.reflect}
    spec = state.spec.model_copy(update={"parent": state.run_id, "limits": limits, **changed})
    following = begin(state, further(state))
    fresh = {"run_id": house.adapters.world.fresh_id(), "spec": spec, "spend": Spend(), "version": 0, "seq": 0}
    new = following.model_copy(update=fresh)
    (row,) = await store.runs(prefix=state.run_id, limit=1)
    await store.create(new, folder=row.folder, created=house.moment, options=row.options)
    said = [message.text for message in await store.told(state.run_id) if message.text]
    for message in (*said, *([text] if text else [])):
        await store.tell(new.run_id, PersonWord.say, message, version=0)
    attempts = f"attempts {new.now.number} to {limits.attempts}"
    if limits.attempts == new.now.number:
        attempts = f"attempt {new.now.number}"
    return ResumeAnswer(
        new.run_id, f"run {state.run_id} has finished; it continues as run {new.run_id} with {attempts}"
    )


async def _anew(house: AppContext, state: RunState, wish: ResumeWish) -> Limits:
    """Return the ended run's limits with the requested changes. Attempts count from the next one.

    If the run ended because too many attempts brought nothing, allow as many again: the person has seen the others.
    """
    first = await house.adapters.store.first(state.run_id)
    own = state.spec.limits.attempts - (first.now.number - 1)
    attempts = state.now.number + (wish.attempts or own)
    limits, vain = state.spec.limits, fruitless(state)
    again = {"stall": 2 * vain, "stall_warning": None} if limits.stall is not None and vain >= limits.stall else {}
    return limits.model_copy(update={**wish.limits, **again, "attempts": attempts})


def _instead(state: RunState) -> str:
    if state.result is Result.unproven:
        return f"accept its patch with: redstart resume {state.run_id} --accept"
    if state.result is Result.verified:
        return f"its tests pass; apply its patch with: redstart apply {state.run_id}"
    if state.spec.mode is Mode.improve:
        return "start a new one: redstart improve"
    return "no attempt was made; start a new run: redstart fix"


def _words(text: str) -> str:
    """Return the typed text in a form that any store accepts. Raises `ConfigError` if it is empty or too long."""
    words = text.strip().encode(errors="replace").decode()
    if not words:
        raise ConfigError("--say is empty", remedy="write what the run should know")
    if len(words) > HINT_LIMIT:
        raise ConfigError(f"--say is longer than {HINT_LIMIT} characters", remedy="shorten it")
    return words
