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

from redstart.app.answers import ResumeWish, hear, standing
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_house
from redstart.core.errors import ConfigError, StoreError
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import HINT_LIMIT, Limits, Result, RunState, Status, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.flow.loop import STEPS
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.states import state
from support import rig as play
from support.engine_contract import asking
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


@pytest.fixture
def house(rig: Rig, tmp_path: Path) -> AppContext:
    return AppContext(Settings(home=tmp_path / "home"), rig.adapters, rig.trees)


async def go_on(rig: Rig, run_id: str, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline, until)).state


def ended(rig: Rig, answers: list[str], limits: Limits | None = None) -> RunState:
    rig.with_model(answers)

    async def go() -> RunState:
        return await go_on(rig, await rig.begin(limits=limits))

    return asyncio.run(go())


def told(rig: Rig, run_id: str) -> list[str]:
    return [item.text for item in asyncio.run(rig.adapters.store.told(run_id))]


def test_a_run_that_is_not_ended_keeps_what_is_said(rig, house):
    run_id = asyncio.run(rig.begin())
    assert asyncio.run(hear(house, run_id, ResumeWish(say=" look at the sum\n"))) == (run_id, "", None)
    assert told(rig, run_id) == ["look at the sum"]
    assert asyncio.run(hear(house, run_id, ResumeWish())) == (run_id, "", None)


@pytest.mark.parametrize("text", ["", " \n", "x" * (HINT_LIMIT + 1)])
def test_words_that_say_nothing_or_too_much_are_refused(rig, house, text):
    run_id = asyncio.run(rig.begin())
    with pytest.raises(ConfigError):
        asyncio.run(hear(house, run_id, ResumeWish(say=text)))
    assert told(rig, run_id) == []


def test_bytes_of_the_shell_that_are_no_text_are_kept_as_a_store_can(rig, house):
    run_id = asyncio.run(rig.begin())
    asyncio.run(hear(house, run_id, ResumeWish(say="caf\udce9")))
    assert told(rig, run_id) == ["caf?"]


def test_limits_are_not_for_a_run_that_goes_on(rig, house):
    run_id = asyncio.run(rig.begin())
    with pytest.raises(ConfigError, match="keeps the limits it began with"):
        asyncio.run(hear(house, run_id, ResumeWish(say="more", usd=9)))
    assert told(rig, run_id) == []


def test_an_unknown_run_is_a_store_error(house):
    with pytest.raises(StoreError, match="there is no run"):
        asyncio.run(hear(house, "nobody", ResumeWish(say="hello")))


def dead() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_words_for_a_run_that_a_living_process_drives_are_left_to_it(tmp_path):
    path, host = tmp_path / "redstart.db", platform.node()

    async def say(house: AppContext, holder: str) -> int | None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("update runs set holder = ?", (holder,))
        return (await hear(house, "run-1", ResumeWish(say=holder))).driver

    async def scenario(house: AppContext) -> None:
        await house.adapters.store.create(state(), folder="/home/shop", created=play.DAWN)
        holders = [f"{host}/{os.getpid()}", f"{host}/{dead()}", "elsewhere/1"]
        assert [await say(house, holder) for holder in holders] == [os.getpid(), None, None]
        assert [message.text for message in await house.adapters.store.told("run-1")] == holders

    with open_house(Settings(home=tmp_path)) as house:
        asyncio.run(scenario(house))


def test_a_red_run_goes_on_as_another_with_all_that_was_tried_and_said(rig, house):
    old = ended(rig, [play.WRONG, play.WORSE], Limits(attempts=2))
    assert old.result is Result.unsolved
    asyncio.run(rig.adapters.store.tell(old.run_id, PersonWord.say, "first", version=0))
    heard = asyncio.run(hear(house, old.run_id, ResumeWish(say="second", attempts=3, usd=0.5, minutes=7)))
    new = asyncio.run(rig.adapters.store.load(heard.run_id))
    assert heard.note == f"run {old.run_id} has finished; it continues as run {new.run_id} with attempts 3 to 5"
    assert (new.spec.parent, new.status, new.now.number, new.version, new.seq) == (old.run_id, Status.running, 3, 0, 0)
    assert new.spec.limits == old.spec.limits.model_copy(update={"attempts": 5, "usd": 0.5, "minutes": 7})
    assert (new.spend.calls, [entry.number for entry in new.history]) == (0, [1, 2])
    assert told(rig, new.run_id) == ["first", "second"]

    model = rig.with_model([play.RIGHT, play.CARD])
    done = asyncio.run(go_on(rig, new.run_id))
    assert (done.result, done.now.number, done.spend.calls) == (Result.verified, 3, 2)
    for text in ("first", "second", "attempt 1", "attempt 2"):
        assert text in str(model.asks[0].messages)
    assert asyncio.run(replay(rig.adapters, new.run_id)).state == done
    assert asyncio.run(rig.adapters.store.load(old.run_id)) == old


def test_its_own_limits_hold_anew_where_none_are_given(rig, house):
    old = ended(rig, [play.WRONG, play.WORSE], Limits(attempts=2, usd=0.7))
    new = asyncio.run(hear(house, old.run_id, ResumeWish(say="again")))
    rig.with_model([play.MISFIT, play.BROKEN])
    assert asyncio.run(go_on(rig, new.run_id)).now.number == 4
    newer = asyncio.run(hear(house, new.run_id, ResumeWish(say="and again")))
    assert newer.note.endswith("with attempts 5 to 6")
    limits = asyncio.run(rig.adapters.store.load(newer.run_id)).spec.limits
    assert (limits.attempts, limits.usd) == (6, 0.7)


def test_a_capped_run_goes_on_with_other_limits_alone(rig, house):
    old = ended(rig, [play.WRONG], Limits(attempts=1))
    heard = asyncio.run(hear(house, old.run_id, ResumeWish(attempts=1)))
    assert heard.note.endswith("with attempt 2")
    assert asyncio.run(hear(house, old.run_id, ResumeWish())) == (old.run_id, "", None)


def test_a_red_run_goes_on_with_another_policy_of_reflection_and_one_that_goes_on_does_not(rig, house):
    old = ended(rig, [play.WRONG], Limits(attempts=1))
    heard = asyncio.run(hear(house, old.run_id, ResumeWish(reflect=ReflectionPolicy.always)))
    assert heard.run_id != old.run_id
    assert asyncio.run(standing(house, heard.run_id)).spec.reflect is ReflectionPolicy.always
    begun = asyncio.run(rig.begin())
    with pytest.raises(ConfigError, match="continues with --reflect never"):
        asyncio.run(hear(house, begun, ResumeWish(reflect=ReflectionPolicy.always)))
    assert asyncio.run(hear(house, begun, ResumeWish(reflect=ReflectionPolicy.never))) == (begun, "", None)
    assert Settings().reflect is ReflectionPolicy.auto


def test_a_green_run_is_not_steered(rig, house):
    old = ended(rig, [play.RIGHT, play.CARD])
    with pytest.raises(ConfigError, match="has finished: 1 failing test now passes") as raised:
        asyncio.run(hear(house, old.run_id, ResumeWish(say="more")))
    assert "redstart apply" in raised.value.remedy
    assert len(asyncio.run(rig.adapters.store.runs())) == 1


def test_an_answer_needs_a_question_and_yes_needs_no_words(rig, house, monkeypatch):
    monkeypatch.setitem(STEPS, Step.decide, asking)
    asks = ended(rig, [play.RIGHT, play.CARD])
    with pytest.raises(ConfigError, match="cannot be combined with --say"):
        asyncio.run(hear(house, asks.run_id, ResumeWish(say="fine", answer=PersonWord.accept)))
    assert asyncio.run(standing(house, asks.run_id)) == asks
    asyncio.run(hear(house, asks.run_id, ResumeWish(say="by the way")))
    assert asyncio.run(standing(house, asks.run_id)) == asks, "a message alone is not an answer"
    asyncio.run(hear(house, asks.run_id, ResumeWish(answer=PersonWord.accept)))
    assert asyncio.run(standing(house, asks.run_id)).status is Status.running
    done = asyncio.run(go_on(rig, asks.run_id))
    assert done.result is Result.verified
    for word in (PersonWord.accept, PersonWord.reject):
        with pytest.raises(ConfigError, match="has not asked anything"):
            asyncio.run(hear(house, asks.run_id, ResumeWish(answer=word)))
