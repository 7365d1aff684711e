"""Goals become complete projects, over real HTTP, with wrong answers on the way.

One program runs by default; `--soak` creates all fifteen.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.scenarios import Goal, Program, parse_question
from support.server import Request, ScriptedServer, Wire

HERE = Path(__file__).parent
SHORT = {"csvsum"}
SCRIPTS = sorted((HERE / "programs").glob("*.script"))
OLD = sorted((HERE / "goals").iterdir())


def make_case(path: Path) -> object:
    return pytest.param(path, id=path.stem, marks=() if path.stem in SHORT else pytest.mark.soak)


def assert_installs(out: Path, lang: str, directory: Path) -> None:
    """Install the project like a user of it and check that it succeeds."""
    copy = shutil.copytree(out, directory / "copy")
    if lang == "node":
        npm = [str(shutil.which("npm")), "install", "--ignore-scripts", "--offline", "--no-audit", "--no-fund"]
        completed = subprocess.run(npm, cwd=copy, capture_output=True, text=True, check=False)
    else:
        uv = [str(shutil.which("uv")), "pip", "install", "-q", "--python", sys.executable]
        target = ["--target", str(directory / "site"), str(copy)]
        completed = subprocess.run([*uv, *target], capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        assert (directory / "site" / out.name / "__init__.py").exists() or list(
            (directory / "site" / out.name).glob("*.py")
        )
    assert completed.returncode == 0, completed.stderr


def assert_tests_pass(out: Path, lang: str) -> None:
    tests = ["node", "--test"] if lang == "node" else [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    completed = subprocess.run(tests, cwd=out, env=environ, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def list_commits(out: Path) -> list[str]:
    command = ["git", "-C", str(out), "log", "--format=%an: %s"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("path", [make_case(path) for path in SCRIPTS])
def test_goal_becomes_a_project(path: Path, user, tmp_path):
    program = Program.load(path)
    out = tmp_path / program.package
    kind = ("--kind", program.kind) if program.kind else ()
    with ScriptedServer(program.reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart(
            "create", program.goal, "-o", out, "--lang", program.lang, *kind, *program.options, "--json"
        )
        for_tests = [request for request in server.requests if parse_question(request) == "reproduce"]
        request_count = len(server.requests)
    assert result.code == 0, "\n".join(result.out.splitlines()[-30:]) + result.err
    assert program.count_unused() == {}
    assert program.code
    assert not [line for line in program.code for request in for_tests if line in request.text]
    assert result.ending["result"] == "verified"
    assert result.ending["calls"] == request_count
    assert "small changes to the program" in result.ending["reason"]
    assert_installs(out, program.lang, tmp_path)
    assert_tests_pass(out, program.lang)
    assert {"README.md", ".gitignore"} <= {item.name for item in out.iterdir()}
    assert list_commits(out) == [f"redstart: Create {program.package}"]
    assert user.redstart("resume", cwd=out).code == 0
    assert len(list_commits(out)) == 1
    replay_result = user.redstart("runs", "replay", cwd=out)
    assert replay_result.code == 0, replay_result.err
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=out).out)
    assert proof["verified"]
    assert proof["mutants"]["killed"] >= 0.6 * proof["mutants"]["sampled"]


@pytest.mark.soak
@pytest.mark.parametrize("path", OLD, ids=lambda path: path.name)
def test_older_goal_survives_two_bad_answers(path: Path, user, tmp_path):
    goal = Goal.load(path)
    out = tmp_path / goal.package
    bad_answers = iter(("Let me think about it first.", "I would rather not."))

    def reply(request: Request) -> str:
        return (
            next(bad_answers, "") or goal.reply(request) if parse_question(request) == "patch" else goal.reply(request)
        )

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("create", goal.goal, "-o", out, "--json")
    assert result.code == 0, result.out + result.err
    assert_installs(out, "python", tmp_path)
    assert_tests_pass(out, "python")
    assert list_commits(out) == [f"redstart: Create {goal.package}"]
