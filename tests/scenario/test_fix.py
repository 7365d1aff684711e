"""Twelve tiny repos, fixed over real HTTP. The model gives the right patch only if the prompt is sufficient."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

HERE = Path(__file__).parent
SCENARIOS = [Scenario.load(folder) for folder in sorted((HERE / "repos").iterdir())]

KINDS = {
    "off-by-one",
    "wrong operator",
    "missing import",
    "None handling",
    "wrong exception",
    "mutable default",
    "encoding",
    "float rounding",
    "circular import",
    "path handling",
    "async bug",
    "two bugs at once",
}


def test_every_kind_of_bug_is_covered():
    assert {scenario.kind for scenario in SCENARIOS} == KINDS
    assert sum(scenario.feedback for scenario in SCENARIOS) == 4
    assert {scenario.runner for scenario in SCENARIOS} == {"pytest", "unittest"}


def iter_cases() -> Iterator[Any]:
    """Yield every fourth repo over one wire, in turn; with --soak, all repos over both wires."""
    for number, scenario in enumerate(SCENARIOS):
        turn, left_out = divmod(number, 4)
        for place, wire in enumerate(Wire):
            marks = [pytest.mark.soak] if left_out or place != turn % len(Wire) else []
            yield pytest.param(scenario, wire, id=f"{scenario.name}-{wire.value}", marks=marks)


@pytest.mark.parametrize(("scenario", "wire"), [*iter_cases()])
def test_bug_is_fixed(scenario: Scenario, wire: Wire, user, repo_of, tmp_path):
    repo = repo_of(scenario.name)
    before = hash_files(repo)
    patch = tmp_path / "fix.patch"
    with ScriptedServer(scenario.reply) as server:
        user.uses(server, wire)
        if wire is Wire.openai:
            user.wants_proof()
        result = user.redstart("fix", repo, "--json", "--patch", patch)
        patch_requests = [
            request for request in server.requests if request.system.startswith("redstart question: patch")
        ]
    assert result.code == 0, result.out + result.err
    assert result.ending["result"] == "verified"
    attempts = 2 if scenario.feedback else 1
    assert result.ending["attempts"] == attempts, [scenario.list_missing(request.text) for request in patch_requests]
    assert result.ending["calls"] <= 2 * attempts
    reproduce_event = next(event for event in result.events if event["name"] == "reproduce" and event["phase"] == "end")
    assert sorted(reproduce_event["data"]["targets"]) == sorted(scenario.red)[:5]
    assert hash_files(repo) == before
    subprocess.run(["git", "apply", str(patch)], cwd=repo, check=True)
    assert {path for path, digest in hash_files(repo).items() if before.get(path) != digest} == set(scenario.files)
    assert suite_passes(repo, scenario.runner)


def hash_files(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, by path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def suite_passes(repo: Path, runner: str) -> bool:
    """Return whether the suite passes outside Redstart, as the user would run it."""
    options = ["-p", "no:cacheprovider", "-q"] if runner == "pytest" else ["discover"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    completed = subprocess.run([sys.executable, "-m", runner, *options], cwd=repo, env=environ, capture_output=True)
    return completed.returncode == 0
