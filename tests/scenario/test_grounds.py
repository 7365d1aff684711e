"""An environment problem is reported with a remedy, and no model is asked."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from redstart.app.settings import Settings
from redstart.app.wire import open_app
from support.sample import sample_parameters
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


def load_expected(name: str) -> dict[str, Any]:
    return json.loads((REPOS / name / "expect.json").read_text())


@pytest.mark.parametrize("name", sample_parameters(EVERY, 3))
def test_environment_problem_is_reported_and_no_model_is_asked(name, user, server, folder):
    expectations = load_expected(name)
    if name == NEEDS_A_SHORT_LIMIT:
        user.environ["REDSTART_SANDBOX__WALL"] = "2"
    result = user.redstart("fix", folder(name))
    assert (result.code, server.requests) == (expectations["exit"], []), result.out + result.err
    kind_text = expectations["kind"].replace("_", " ")
    missing_parts = [part for part in (kind_text, *expectations["says"]) if part.lower() not in result.out.lower()]
    assert not missing_parts, result.out


def test_bug_is_fixed_and_environment_problem_beside_it_is_ignored(user, tmp_path):
    bug = Scenario.load(Path(__file__).parent / "repos" / "pager")
    repo = Path(shutil.copytree(Path(__file__).parent / "repos" / "pager" / "repo", tmp_path / "projects" / "pager"))
    # Its name sorts before the bug's tests, so a run that takes it for the first failing test would fail here.
    (repo / "tests" / "test_a_table.py").write_text("import yaml\n\n\ndef test_a():\n    assert yaml\n")
    with ScriptedServer(bug.reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--json")
    assert result.code == 0, result.out + result.err
    (reproduction,) = [
        event["data"] for event in result.events if (event["name"], event["phase"]) == ("reproduce", "end")
    ]
    assert reproduction["target_count"] == reproduction["red"] - 1
    assert not [id_ for id_ in reproduction["targets"] if "test_a_table" in id_]
    with open_app(Settings(home=user.home)) as app:
        state = asyncio.run(app.adapters.store.load(result.events[0]["run"]))
    reproduction_result = state.now.reproduce
    assert reproduction_result is not None
    assert reproduction_result.grounds == ("missing module: yaml is not installed (1 test)",)
    assert "pip install pyyaml" in reproduction_result.remedy
    assert not reproduction_result.trouble
    assert reproduction_result.report.signature is not None
    assert reproduction_result.report.signature.exception == "AssertionError"
    assert not [case.id for case in reproduction_result.report.cases if "test_a_table" in case.id]
