"""A finished run is replayed without its provider: the same events, no tokens; a changed record is detected."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.scenarios import Goal, Scenario
from support.server import ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")
GOAL = Goal.load(sorted((HERE / "goals").iterdir())[0])


@pytest.fixture(scope="module")
def ran(tmp_path_factory, project) -> tuple[User, Path]:
    """Return a user and the folder of a run that needed two attempts. Its provider is down."""
    folder = tmp_path_factory.mktemp("ran")
    user, repo = User(folder, project), folder / "projects" / SCENARIO.name
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo).code == 0
    return user, repo


@pytest.fixture
def finished(ran, tmp_path) -> Iterator[tuple[User, Path]]:
    """Yield the same user and folder, and restore the store after the test."""
    user, repo = ran
    environ = dict(user.environ)
    shutil.copytree(user.home, tmp_path / "kept")
    yield user, repo
    user.environ = environ
    shutil.rmtree(user.home)
    shutil.move(tmp_path / "kept", user.home)


def test_replay_needs_neither_model_nor_sandbox(finished):
    user, repo = finished
    user.environ["PATH"] = "/usr/bin:/bin"
    events = list(user.redstart("runs", "replay", "--json", cwd=repo).events)
    replay_result = user.redstart("runs", "replay", cwd=repo)
    assert replay_result.code == 0, replay_result.err
    assert "0 tokens" in replay_result.out
    assert [event["name"] for event in events if event["phase"] == "end"][-2:] == ["decide", "run"]
    assert events[-1]["data"]["result"] == "verified"


@pytest.mark.soak
def test_created_program_can_be_replayed(user, tmp_path):
    with ScriptedServer(GOAL.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("create", GOAL.goal, "-o", tmp_path / GOAL.package).code == 0
    replay_result = user.redstart("runs", "replay", cwd=tmp_path / GOAL.package)
    assert replay_result.code == 0, replay_result.err


def change(user: User, statement: str, *values: str) -> None:
    with sqlite3.connect(user.home / "redstart.db") as database:
        assert database.execute(statement, values).rowcount == 1
    database.close()


@pytest.mark.parametrize(
    ("column", "value"),
    [("result", '{"forged": true}'), ("request_hash", "0" * 64), ("request", "0" * 64), ("kind", "recall")],
)
def test_tampered_journal_is_reported_as_the_first_differing_call(finished, column, value):
    user, repo = finished
    change(
        user,
        f"update journal set {column} = ? where attempt = 2 and step = 'patch' and ordinal = 0",
        value,
    )
    replay_result = user.redstart("runs", "replay", cwd=repo)
    assert replay_result.code == 3
    assert "attempt 2, patch, call 0 (model)" in replay_result.err


def test_missing_call_is_reported(finished):
    user, repo = finished
    change(user, "delete from journal where attempt = 1 and step = 'test' and ordinal = 0")
    replay_result = user.redstart("runs", "replay", cwd=repo)
    assert replay_result.code == 3
    assert "attempt 1, test, call 0 (sandbox): it is not in the journal" in replay_result.err


def test_step_with_a_changed_result_is_reported(finished):
    user, repo = finished
    change(user, "update steps set artifact = '{}' where attempt = 1 and step = 'apply'")
    replay_result = user.redstart("runs", "replay", cwd=repo)
    assert replay_result.code == 3
    assert "attempt 1, apply: its result differs" in replay_result.err
