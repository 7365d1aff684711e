"""Which runs can move to a fleet, and which workers may serve it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.app.control import ask, clear
from redstart.app.fleet import bound_to_machine, is_supervised, reach, refuse_stuck, tell
from redstart.app.runs import keep_environment
from redstart.app.settings import FleetSettings, Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.app.settings.store import StoreSettings
from redstart.app.trial import write_variables
from redstart.app.wire import AppContext, open_house
from redstart.app.worker import privileged, refuse_keys, refuse_missing
from redstart.core.errors import ConfigError, PortError
from redstart.core.run import RunState, Status, Suite
from redstart.core.shell import Environment
from redstart.core.standing import Control
from redstart.testing import states
from support.rig import DAWN

PLAIN = Environment(mount="/repo", python=sys.executable)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    models = Models(strong="command:cat", fast="command:cat")
    with open_house(Settings(home=tmp_path, models=models)) as opened:
        yield opened


def kept(house: AppContext, environment: Environment = PLAIN) -> RunState:
    suite = Suite(runner="pytest", environment=keep_environment(house, environment))
    state = states.state(spec=states.spec(suite=suite))
    asyncio.run(house.adapters.store.create(state, folder="/repo", created=DAWN))
    return state


def shared(house: AppContext, **fleet: object) -> AppContext:
    settings = house.settings.model_copy(
        update={"store": StoreSettings(url="postgresql://somewhere/db"), "fleet": FleetSettings.model_validate(fleet)}
    )
    return AppContext(settings, house.adapters, house.trees)


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"OPENAI_API_KEY": "sk-1"}, "OPENAI_API_KEY"),
        ({"SOME_OTHER_API_KEY": "sk-1"}, "SOME_OTHER_API_KEY"),
        ({"MY_TOKEN": "sk-1"}, "MY_TOKEN"),
    ],
)
def test_who_runs_tests_holds_no_key(environ: dict[str, str], named: str) -> None:
    settings = Settings(models=Models(options={"openai:own": ModelOptions(key_variable="MY_TOKEN")}))
    with pytest.raises(ConfigError) as caught:
        refuse_keys(settings, environ)
    assert named in str(caught.value)
    assert "sk-1" not in f"{caught.value}{caught.value.remedy}"


def test_a_key_in_an_address_counts_as_one() -> None:
    settings = Settings(models=Models(base_url="https://user:sk-1@models.example.com"))
    with pytest.raises(ConfigError, match=r"models\.base_url") as caught:
        refuse_keys(settings, {})
    assert "sk-1" not in str(caught.value)


def test_without_a_key_nothing_is_refused() -> None:
    refuse_keys(Settings(models=Models(base_url="https://models.example.com")), {"PATH": "/bin", "OPENAI_API_KEY": ""})


@pytest.mark.slow
def test_who_thinks_runs_nothing_and_who_acts_asks_nobody(house: AppContext) -> None:
    thinks = privileged(house, "think").adapters
    assert (thinks.sandbox, thinks.installer) == (None, None)
    assert thinks.model is not None
    acts = privileged(house, "act").adapters
    assert acts.model is None
    assert acts.sandbox is not None
    assert acts.installer is not None
    both = privileged(house, "both").adapters
    assert None not in (both.model, both.sandbox, both.installer)


def test_what_only_this_machine_has_is_named() -> None:
    assert bound_to_machine(PLAIN) == []
    (built,) = bound_to_machine(PLAIN.model_copy(update={"copies": ("src/fast.so",)}))
    assert "src/fast.so" in built
    (large,) = bound_to_machine(PLAIN.model_copy(update={"left_out": ("data.bin",)}))
    assert "data.bin" in large
    (installed,) = bound_to_machine(PLAIN.model_copy(update={"read_only": ("/opt/project/.venv",)}))
    assert "/opt/project/.venv" in installed


@pytest.mark.slow
def test_a_run_that_cannot_move_says_why(house: AppContext) -> None:
    state = kept(house, PLAIN.model_copy(update={"read_only": ("/opt/project/.venv",)}))
    with pytest.raises(ConfigError, match=r"store\.url.*/opt/project/\.venv") as caught:
        refuse_stuck(house, state)
    assert f"redstart resume {state.run_id}" in caught.value.remedy
    with pytest.raises(ConfigError, match=r"cannot move.*/opt/project/\.venv"):
        refuse_stuck(shared(house), state)
    refuse_stuck(shared(house, same_machine=True), state)


@pytest.mark.slow
def test_a_run_that_can_move_is_not_refused(house: AppContext) -> None:
    state = kept(house)
    refuse_stuck(shared(house), state)
    with pytest.raises(ConfigError, match=r"store\.url"):
        refuse_stuck(house, state)


@pytest.mark.slow
def test_a_worker_without_the_interpreter_says_so(house: AppContext) -> None:
    state = kept(house, PLAIN.model_copy(update={"python": "/no/such/python"}))
    with pytest.raises(ConfigError, match="/no/such/python"):
        asyncio.run(refuse_missing(house, state.run_id))


@pytest.mark.slow
def test_a_worker_with_the_interpreter_goes_on(house: AppContext) -> None:
    asyncio.run(refuse_missing(house, kept(house).run_id))


@pytest.mark.slow
def test_without_a_fleet_nobody_supervises(house: AppContext) -> None:
    state = kept(house)
    assert asyncio.run(is_supervised(house.settings, state)) is False
    assert asyncio.run(tell(house.settings, state, "cancel")) is False
    with pytest.raises(ConfigError, match="no fleet"):
        asyncio.run(reach(house.settings))


@pytest.mark.slow
def test_a_fleet_that_does_not_answer_is_named(house: AppContext) -> None:
    settings = shared(house, address="127.0.0.1:9").settings
    with pytest.raises(PortError, match=r"127\.0\.0\.1:9"):
        asyncio.run(reach(settings))


@pytest.mark.slow
def test_what_is_asked_of_a_run_is_heard_at_its_next_commit_and_can_be_taken_back(house: AppContext) -> None:
    state = kept(house)
    store = house.adapters.store

    async def go() -> list[Control]:
        claim = await store.claim(state.run_id)
        await ask(house, state.run_id, Control.pause)
        first = states.commit(state)
        heard = [await store.commit(first, claim.fence)]
        await clear(house, state.run_id)
        return [*heard, await store.commit(states.commit(first.after), claim.fence)]

    assert asyncio.run(go()) == [Control.pause, Control.none]


@pytest.mark.slow
def test_nothing_is_asked_of_a_run_that_has_ended(house: AppContext) -> None:
    state = kept(house)

    async def go() -> None:
        claim = await house.adapters.store.claim(state.run_id)
        await house.adapters.store.commit(states.commit(state, status=Status.finished, reason="green"), claim.fence)
        await ask(house, state.run_id, Control.cancel)

    with pytest.raises(ConfigError, match="has finished"):
        asyncio.run(go())


def test_the_trials_file_of_variables_is_the_users_alone(tmp_path: Path) -> None:
    file = write_variables(tmp_path / "env.sh", {"REDSTART_STORE__URL": "postgresql://a:b c@h/d"})
    assert file.read_text() == "export REDSTART_STORE__URL='postgresql://a:b c@h/d'\n"
    assert file.stat().st_mode & 0o777 == 0o600
