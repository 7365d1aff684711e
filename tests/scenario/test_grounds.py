"""An environment problem is reported with a remedy, and no model is asked."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from redstart.app.settings import Settings
from redstart.app.wire import open_house
from support.sample import short_form
from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

REPOS = Path(__file__).parent / "grounds" / "repos"
NEEDS_A_SHORT_LIMIT = "never_ends"
EVERY = sorted(folder.name for folder in REPOS.iterdir())


@pytest.fixture
def server():
    with ScriptedServer(lambda request: "no edits") as running:
        yield running


@pytest.fixture
def folder(tmp_path, user, server):
    """Return a function that copies a sample repo to where a user would have it."""
    user.uses(server, Wire.openai)

    def copy(name: str) -> Path:
        return Path(shutil.copytree(REPOS / name / "repo", tmp_path / "projects" / name))

    return copy


def expected(name: str) -> dict[str, Any]:
    return json.loads((REPOS / name / "expect.json").read_text())


@pytest.mark.parametrize("name", short_form(EVERY, 3))
def test_broken_ground_is_named_and_nobody_is_asked(name, user, server, folder):
    wanted = expected(name)
    if name == NEEDS_A_SHORT_LIMIT:
        user.environ["REDSTART_SANDBOX__WALL"] = "2"
    ran = user.redstart("fix", folder(name))
    assert (ran.code, server.requests) == (wanted["exit"], []), ran.out + ran.err
    words = wanted["kind"].replace("_", " ")
    told = [part for part in (words, *wanted["says"]) if part.lower() not in ran.out.lower()]
    assert not told, ran.out


def test_a_bug_beside_broken_ground_is_fixed_and_the_ground_is_left_alone(user, tmp_path):
    bug = Scenario.load(Path(__file__).parent / "repos" / "pager")
    repo = Path(shutil.copytree(Path(__file__).parent / "repos" / "pager" / "repo", tmp_path / "projects" / "pager"))
    # Its name sorts before the bug's tests, so a run that takes it for the first failing test would fail here.
    (repo / "tests" / "test_a_table.py").write_text("import yaml\n\n\ndef test_a():\n    assert yaml\n")
    with ScriptedServer(bug.reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--json")
    assert ran.code == 0, ran.out + ran.err
    (found,) = [event["data"] for event in ran.events if (event["name"], event["phase"]) == ("reproduce", "end")]
    assert found["target_count"] == found["red"] - 1
    assert not [id_ for id_ in found["targets"] if "test_a_table" in id_]
    with open_house(Settings(home=user.home)) as house:
        state = asyncio.run(house.adapters.store.load(ran.events[0]["run"]))
    told = state.now.reproduce
    assert told is not None
    assert told.grounds == ("missing module: yaml is not installed (1 test)",)
    assert "pip install pyyaml" in told.remedy
    assert not told.trouble
    assert told.report.signature is not None
    assert told.report.signature.exception == "AssertionError"
    assert not [case.id for case in told.report.cases if "test_a_table" in case.id]
