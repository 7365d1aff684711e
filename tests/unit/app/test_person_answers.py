"""What a person may tell a run in each of its states."""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from redstart.app.person_answers import ResumeWish, handle_resume, load_resumed_state
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.core.errors import ConfigError, StoreError
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import HINT_LIMIT, Limits, Result, RunState, Status, Step
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.flow.loop import STEPS
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.states import make_state
from support import rig as play
from support.engine_contract import ask_before_accept
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path / "snapshots")
    yield new_rig
    new_rig.trees.close()


@pytest.fixture
def house(rig: Rig, tmp_path: Path) -> AppContext:
    return AppContext(Settings(home=tmp_path / "home"), rig.adapters, rig.trees)


async def go_on(rig: Rig, run_id: str, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline, until)).state


async def run_to_end(rig: Rig, answers: list[str], limits: Limits | None = None) -> RunState:
    rig.with_model(answers)

    async def go() -> RunState:
        return await go_on(rig, await rig.begin(limits=limits))

    return await go()


async def list_messages(rig: Rig, run_id: str) -> list[str]:
    return [item.text for item in await rig.adapters.store.list_messages(run_id)]


async def test_unfinished_run_keeps_the_message(rig, house):
    run_id = await rig.begin()
    assert await handle_resume(house, run_id, ResumeWish(say=" look at the sum\n")) == (run_id, "", None)
    assert await list_messages(rig, run_id) == ["look at the sum"]
    assert await handle_resume(house, run_id, ResumeWish()) == (run_id, "", None)


@pytest.mark.parametrize("text", ["", " \n", "x" * (HINT_LIMIT + 1)])
async def test_empty_or_too_long_message_is_rejected(rig, house, text):
    run_id = await rig.begin()
    with pytest.raises(ConfigError):
        await handle_resume(house, run_id, ResumeWish(say=text))
    assert await list_messages(rig, run_id) == []


async def test_undecodable_shell_bytes_are_replaced(rig, house):
    run_id = await rig.begin()
    await handle_resume(house, run_id, ResumeWish(say="caf\udce9"))
    assert await list_messages(rig, run_id) == ["caf?"]


async def test_unfinished_run_accepts_no_new_limits(rig, house):
    run_id = await rig.begin()
    with pytest.raises(ConfigError, match="keeps the limits it began with"):
        await handle_resume(house, run_id, ResumeWish(say="more", usd=9))
    assert await list_messages(rig, run_id) == []


async def test_unknown_run_is_a_store_error(house):
    with pytest.raises(StoreError, match="there is no run"):
        await handle_resume(house, "nobody", ResumeWish(say="hello"))


def get_dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_message_to_a_driven_run_is_left_to_its_driver(tmp_path):
    path, host = tmp_path / "redstart.db", platform.node()

    async def say(house: AppContext, holder: str) -> int | None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("update runs set holder = ?", (holder,))
        return (await handle_resume(house, "run-1", ResumeWish(say=holder))).driver

    async def run_scenario(house: AppContext) -> None:
        await house.adapters.store.create(make_state(), folder="/home/shop", created=play.DAWN)
        holders = [f"{host}/{os.getpid()}", f"{host}/{get_dead_pid()}", "elsewhere/1"]
        assert [await say(house, holder) for holder in holders] == [os.getpid(), None, None]
        assert [message.text for message in await house.adapters.store.list_messages("run-1")] == holders

    with open_app(Settings(home=tmp_path)) as app:
        asyncio.run(run_scenario(app))


async def test_unsolved_run_continues_as_new_run_with_its_history_and_messages(rig, house):
    old = await run_to_end(rig, [play.WRONG, play.WORSE], Limits(attempts=2))
    assert old.result is Result.unsolved
    await rig.adapters.store.send_message(old.run_id, PersonWord.say, "first", version=0)
    hear_result = await handle_resume(house, old.run_id, ResumeWish(say="second", attempts=3, usd=0.5, minutes=7))
    new = await rig.adapters.store.load(hear_result.run_id)
    assert hear_result.note == f"run {old.run_id} has finished; it continues as run {new.run_id} with attempts 3 to 5"
    assert (new.spec.parent, new.status, new.now.number, new.version, new.seq) == (old.run_id, Status.running, 3, 0, 0)
    assert new.spec.limits == old.spec.limits.model_copy(update={"attempts": 5, "usd": 0.5, "minutes": 7})
    assert (new.spend.calls, [entry.number for entry in new.history]) == (0, [1, 2])
    assert await list_messages(rig, new.run_id) == ["first", "second"]

    model = rig.with_model([play.RIGHT, play.CARD])
    final_state = await go_on(rig, new.run_id)
    assert (final_state.result, final_state.now.number, final_state.spend.calls) == (Result.verified, 3, 2)
    for text in ("first", "second", "attempt 1", "attempt 2"):
        assert text in str(model.questions[0].messages)
    assert (await replay(rig.adapters, new.run_id)).state == final_state
    assert await rig.adapters.store.load(old.run_id) == old


async def test_continued_run_keeps_its_limits_unless_new_limits_are_given(rig, house):
    old = await run_to_end(rig, [play.WRONG, play.WORSE], Limits(attempts=2, usd=0.7))
    new = await handle_resume(house, old.run_id, ResumeWish(say="again"))
    rig.with_model([play.MISFIT, play.BROKEN])
    assert (await go_on(rig, new.run_id)).now.number == 4
    next_result = await handle_resume(house, new.run_id, ResumeWish(say="and again"))
    assert next_result.note.endswith("with attempts 5 to 6")
    limits = (await rig.adapters.store.load(next_result.run_id)).spec.limits
    assert (limits.attempts, limits.usd) == (6, 0.7)


async def test_capped_run_continues_with_new_limits_alone(rig, house):
    old = await run_to_end(rig, [play.WRONG], Limits(attempts=1))
    hear_result = await handle_resume(house, old.run_id, ResumeWish(attempts=1))
    assert hear_result.note.endswith("with attempt 2")
    assert await handle_resume(house, old.run_id, ResumeWish()) == (old.run_id, "", None)


async def test_only_a_finished_run_accepts_another_reflection_policy(rig, house):
    old = await run_to_end(rig, [play.WRONG], Limits(attempts=1))
    hear_result = await handle_resume(house, old.run_id, ResumeWish(reflect=ReflectionPolicy.always))
    assert hear_result.run_id != old.run_id
    assert (await load_resumed_state(house, hear_result.run_id)).spec.reflect is ReflectionPolicy.always
    new_run_id = await rig.begin()
    with pytest.raises(ConfigError, match="continues with --reflect never"):
        await handle_resume(house, new_run_id, ResumeWish(reflect=ReflectionPolicy.always))
    assert await handle_resume(house, new_run_id, ResumeWish(reflect=ReflectionPolicy.never)) == (
        new_run_id,
        "",
        None,
    )
    assert Settings().reflect is ReflectionPolicy.auto


async def test_verified_run_accepts_no_message(rig, house):
    old = await run_to_end(rig, [play.RIGHT, play.CARD])
    with pytest.raises(ConfigError, match="has finished: 1 failing test now passes") as error_info:
        await handle_resume(house, old.run_id, ResumeWish(say="more"))
    assert "redstart apply" in error_info.value.remedy
    assert len(await rig.adapters.store.list_runs()) == 1


async def test_answer_needs_a_question_and_accept_takes_no_message(rig, house, monkeypatch):
    monkeypatch.setitem(STEPS, Step.decide, ask_before_accept)
    waiting_state = await run_to_end(rig, [play.RIGHT, play.CARD])
    with pytest.raises(ConfigError, match="cannot be combined with --say"):
        await handle_resume(house, waiting_state.run_id, ResumeWish(say="fine", answer=PersonWord.accept))
    assert await load_resumed_state(house, waiting_state.run_id) == waiting_state
    await handle_resume(house, waiting_state.run_id, ResumeWish(say="by the way"))
    assert await load_resumed_state(house, waiting_state.run_id) == waiting_state, "a message alone is not an answer"
    await handle_resume(house, waiting_state.run_id, ResumeWish(answer=PersonWord.accept))
    assert (await load_resumed_state(house, waiting_state.run_id)).status is Status.running
    final_state = await go_on(rig, waiting_state.run_id)
    assert final_state.result is Result.verified
    for word in (PersonWord.accept, PersonWord.reject):
        with pytest.raises(ConfigError, match="has not asked anything"):
            await handle_resume(house, waiting_state.run_id, ResumeWish(answer=word))
