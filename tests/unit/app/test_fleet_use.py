"""Which runs can move to a fleet, and which workers may serve it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.app.control import ask, clear
from redstart.app.fleet import bound_to_machine, is_supervised, reach, refuse_stuck, send_signal
from redstart.app.runs import keep_environment
from redstart.app.settings import FleetSettings, Models, Settings
from redstart.app.settings.models import ModelOptions
from redstart.app.settings.store import StoreSettings
from redstart.app.trial import write_variables
from redstart.app.wire import AppContext, open_app
from redstart.app.worker import refuse_keys, refuse_missing, restrict_privileges
from redstart.core.errors import ConfigError, PortError
from redstart.core.run import RunState, Status, Suite
from redstart.core.run_status import Control
from redstart.core.shell import Environment
from redstart.testing import states
from support.rig import DAWN

PLAIN = Environment(mount="/repo", python=sys.executable)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    models = Models(strong="command:cat", fast="command:cat")
    with open_app(Settings(home=tmp_path, models=models)) as app:
        yield app


def create_run(house: AppContext, environment: Environment = PLAIN) -> RunState:
    suite = Suite(runner="pytest", environment=keep_environment(house, environment))
    state = states.make_state(spec=states.make_spec(suite=suite))
    asyncio.run(house.adapters.store.create(state, folder="/repo", created=DAWN))
    return state


def share_app(house: AppContext, **fleet: object) -> AppContext:
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
def test_worker_that_runs_tests_holds_no_key(environ: dict[str, str], named: str) -> None:
    settings = Settings(models=Models(options={"openai:own": ModelOptions(key_variable="MY_TOKEN")}))
    with pytest.raises(ConfigError) as caught:
        refuse_keys(settings, environ)
    assert named in str(caught.value)
    assert "sk-1" not in f"{caught.value}{caught.value.remedy}"


def test_key_in_an_address_counts_as_a_key() -> None:
    settings = Settings(models=Models(base_url="https://user:sk-1@models.example.com"))
    with pytest.raises(ConfigError, match=r"models\.base_url") as caught:
        refuse_keys(settings, {})
    assert "sk-1" not in str(caught.value)


def test_settings_without_a_key_are_accepted() -> None:
    refuse_keys(Settings(models=Models(base_url="https://models.example.com")), {"PATH": "/bin", "OPENAI_API_KEY": ""})


@pytest.mark.slow
def test_thinking_worker_has_no_sandbox_and_acting_worker_has_no_model(house: AppContext) -> None:
    model_adapters = restrict_privileges(house, "think").adapters
    assert (model_adapters.sandbox, model_adapters.installer) == (None, None)
    assert model_adapters.model is not None
    sandbox_adapters = restrict_privileges(house, "act").adapters
    assert sandbox_adapters.model is None
    assert sandbox_adapters.sandbox is not None
    assert sandbox_adapters.installer is not None
    all_adapters = restrict_privileges(house, "both").adapters
    assert None not in (all_adapters.model, all_adapters.sandbox, all_adapters.installer)


def test_dependencies_on_this_machine_are_named() -> None:
    assert bound_to_machine(PLAIN) == []
    (built_message,) = bound_to_machine(PLAIN.model_copy(update={"copies": ("src/fast.so",)}))
    assert "src/fast.so" in built_message
    (large,) = bound_to_machine(PLAIN.model_copy(update={"left_out": ("data.bin",)}))
    assert "data.bin" in large
    (installed_message,) = bound_to_machine(PLAIN.model_copy(update={"read_only": ("/opt/project/.venv",)}))
    assert "/opt/project/.venv" in installed_message


@pytest.mark.slow
def test_run_that_cannot_move_is_rejected_with_the_reason(house: AppContext) -> None:
    state = create_run(house, PLAIN.model_copy(update={"read_only": ("/opt/project/.venv",)}))
    with pytest.raises(ConfigError, match=r"store\.url.*/opt/project/\.venv") as caught:
        refuse_stuck(house, state)
    assert f"redstart resume {state.run_id}" in caught.value.remedy
    with pytest.raises(ConfigError, match=r"cannot move.*/opt/project/\.venv"):
        refuse_stuck(share_app(house), state)
    refuse_stuck(share_app(house, same_machine=True), state)


@pytest.mark.slow
def test_run_that_can_move_is_accepted(house: AppContext) -> None:
    state = create_run(house)
    refuse_stuck(share_app(house), state)
    with pytest.raises(ConfigError, match=r"store\.url"):
        refuse_stuck(house, state)


@pytest.mark.slow
def test_worker_without_the_interpreter_is_rejected(house: AppContext) -> None:
    state = create_run(house, PLAIN.model_copy(update={"python": "/no/such/python"}))
    with pytest.raises(ConfigError, match="/no/such/python"):
        asyncio.run(refuse_missing(house, state.run_id))


@pytest.mark.slow
def test_worker_with_the_interpreter_is_accepted(house: AppContext) -> None:
    asyncio.run(refuse_missing(house, create_run(house).run_id))


@pytest.mark.slow
def test_run_without_a_fleet_has_no_supervisor(house: AppContext) -> None:
    state = create_run(house)
    assert asyncio.run(is_supervised(house.settings, state)) is False
    assert asyncio.run(send_signal(house.settings, state, "cancel")) is False
    with pytest.raises(ConfigError, match="no fleet"):
        asyncio.run(reach(house.settings))


@pytest.mark.slow
async def test_unreachable_fleet_is_named(house: AppContext) -> None:
    settings = share_app(house, address="127.0.0.1:9").settings
    with pytest.raises(PortError, match=r"127\.0\.0\.1:9"):
        await reach(settings)


@pytest.mark.slow
def test_control_request_arrives_at_the_next_commit_and_can_be_withdrawn(house: AppContext) -> None:
    state = create_run(house)
    store = house.adapters.store

    async def go() -> list[Control]:
        claim = await store.claim(state.run_id)
        await ask(house, state.run_id, Control.pause)
        first_commit = states.commit(state)
        controls = [await store.commit(first_commit, claim.fence)]
        await clear(house, state.run_id)
        return [*controls, await store.commit(states.commit(first_commit.after), claim.fence)]

    assert asyncio.run(go()) == [Control.pause, Control.none]


@pytest.mark.slow
def test_finished_run_takes_no_control_request(house: AppContext) -> None:
    state = create_run(house)

    async def go() -> None:
        claim = await house.adapters.store.claim(state.run_id)
        await house.adapters.store.commit(states.commit(state, status=Status.finished, reason="green"), claim.fence)
        await ask(house, state.run_id, Control.cancel)

    with pytest.raises(ConfigError, match="has finished"):
        asyncio.run(go())


def test_variables_file_is_private_to_the_user(tmp_path: Path) -> None:
    file = write_variables(tmp_path / "env.sh", {"REDSTART_STORE__URL": "postgresql://a:b c@h/d"})
    assert file.read_text() == "export REDSTART_STORE__URL='postgresql://a:b c@h/d'\n"
    assert file.stat().st_mode & 0o777 == 0o600
