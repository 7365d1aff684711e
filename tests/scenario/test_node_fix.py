"""Broken Node.js projects, fixed over real HTTP: node, Jest, Vitest and Mocha, with and without types.

One per runner runs by default, all of them with `--soak`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from support.node import MODULES, cache_folder, install_manifest, put
from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

HERE = Path(__file__).parent
FOLDERS = sorted((HERE / "node_repos").iterdir())
SCENARIOS = [Scenario.load(folder) for folder in FOLDERS]
WRONG = ("basket", "ledger_js")
"""Scenarios that are also run with the plausible wrong answer."""
SHORT = ("basket", "roster", "tempo", "wiki")


def make_case(scenario: Scenario, default_names: tuple[str, ...] = SHORT):
    return pytest.param(scenario, id=scenario.name, marks=() if scenario.name in default_names else pytest.mark.soak)


def place(scenario: Scenario, to: Path) -> Path:
    """Create the scenario's repo: a git repo with its packages installed."""
    folder = HERE / "node_repos" / scenario.name
    tools = json.loads((folder / "tools.json").read_text())["tools"]
    subprocess.run(["cp", "-r", str(folder / "repo"), str(to)], check=True)
    if tools:
        put(install_manifest(HERE / "node_tools" / tools, cache_folder()), to)
    subprocess.run(["git", "init", "-q"], cwd=to, check=True)
    return to


def hash_files(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, by path, without installed packages."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and MODULES not in path.parts and ".git" not in path.parts
    }


def suite_passes(repo: Path, runner: str) -> bool:
    """Return whether the suite passes outside Redstart, without coverage, whose tools are not installed."""
    commands = {"node": ["npm", "test", "--silent"], "jest": ["npx", "jest"], "vitest": ["npx", "vitest", "run"]}
    command = commands.get(runner, ["npx", "mocha", "--recursive", "test", "spec/**/*.mjs"])
    environ = {**os.environ, "CI": "true"}
    return subprocess.run(command, cwd=repo, env=environ, capture_output=True, check=False).returncode == 0


def test_every_runner_is_covered():
    runners = {"node", "jest", "vitest", "mocha"}
    assert {scenario.runner for scenario in SCENARIOS} == runners
    assert {scenario.runner for scenario in SCENARIOS if scenario.name in SHORT} == runners
    assert len({scenario.kind for scenario in SCENARIOS}) == len(SCENARIOS) == 10


@pytest.mark.parametrize("scenario", [make_case(scenario) for scenario in SCENARIOS])
def test_bug_is_fixed(scenario: Scenario, user, tmp_path):
    repo = place(scenario, tmp_path / scenario.name)
    before = hash_files(repo)
    patch = tmp_path / "fix.patch"
    with ScriptedServer(scenario.reply) as server:
        user.uses(server, Wire.openai)
        if scenario.runner == "node":
            user.wants_proof()
        result = user.redstart("fix", repo, "--json", "--patch", patch)
        patch_requests = [
            request for request in server.requests if request.system.startswith("redstart question: patch")
        ]
    assert result.code == 0, result.out + result.err
    assert result.ending["result"] == "verified"
    assert result.ending["attempts"] == 1, [scenario.list_missing(request.text) for request in patch_requests]
    reproduce_event = next(event for event in result.events if event["name"] == "reproduce" and event["phase"] == "end")
    assert sorted(reproduce_event["data"]["targets"]) == sorted(scenario.red)
    assert hash_files(repo) == before
    subprocess.run(["git", "apply", str(patch)], cwd=repo, check=True)
    assert {path for path, digest in hash_files(repo).items() if before.get(path) != digest} == set(scenario.files)
    assert suite_passes(repo, scenario.runner)


@pytest.mark.parametrize("scenario", [make_case(item, ("basket",)) for item in SCENARIOS if item.name in WRONG])
def test_wrong_patch_is_not_verified(scenario: Scenario, user, tmp_path):
    repo = place(scenario, tmp_path / scenario.name)
    with ScriptedServer(lambda request: scenario.wrong) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--json", "--max-iters", "1")
    assert result.code == 1, result.out + result.err
    assert result.ending["result"] == "unsolved"
