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

from support.scenarios import Goal, Program, question
from support.server import Request, ScriptedServer, Wire

HERE = Path(__file__).parent
SHORT = {"csvsum"}
SCRIPTS = sorted((HERE / "programs").glob("*.script"))
OLD = sorted((HERE / "goals").iterdir())


def choice(path: Path) -> object:
    return pytest.param(path, id=path.stem, marks=() if path.stem in SHORT else pytest.mark.soak)


def installs(out: Path, lang: str, into: Path) -> None:
    """Install the project like a user of it and check that it succeeds."""
    copy = shutil.copytree(out, into / "copy")
    if lang == "node":
        npm = [str(shutil.which("npm")), "install", "--ignore-scripts", "--offline", "--no-audit", "--no-fund"]
        done = subprocess.run(npm, cwd=copy, capture_output=True, text=True, check=False)
    else:
        uv = [str(shutil.which("uv")), "pip", "install", "-q", "--python", sys.executable]
        target = ["--target", str(into / "site"), str(copy)]
        done = subprocess.run([*uv, *target], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (into / "site" / out.name / "__init__.py").exists() or list((into / "site" / out.name).glob("*.py"))
    assert done.returncode == 0, done.stderr


def passes_outside(out: Path, lang: str) -> None:
    tests = ["node", "--test"] if lang == "node" else [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(tests, cwd=out, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def commits_of(out: Path) -> list[str]:
    asked = ["git", "-C", str(out), "log", "--format=%an: %s"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("path", [choice(path) for path in SCRIPTS])
def test_a_goal_becomes_a_project(path: Path, user, tmp_path):
    program = Program.load(path)
    out = tmp_path / program.package
    kind = ("--kind", program.kind) if program.kind else ()
    with ScriptedServer(program.reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart(
            "create", program.goal, "-o", out, "--lang", program.lang, *kind, *program.options, "--json"
        )
        for_tests = [request for request in server.requests if question(request) == "reproduce"]
        asked = len(server.requests)
    assert ran.code == 0, "\n".join(ran.out.splitlines()[-30:]) + ran.err
    assert program.left() == {}
    assert program.code
    assert not [line for line in program.code for request in for_tests if line in request.text]
    assert ran.ending["result"] == "verified"
    assert ran.ending["calls"] == asked
    assert "small changes to the program" in ran.ending["reason"]
    installs(out, program.lang, tmp_path)
    passes_outside(out, program.lang)
    assert {"README.md", ".gitignore"} <= {item.name for item in out.iterdir()}
    assert commits_of(out) == [f"redstart: Create {program.package}"]
    assert user.redstart("resume", cwd=out).code == 0
    assert len(commits_of(out)) == 1
    replayed = user.redstart("runs", "replay", cwd=out)
    assert replayed.code == 0, replayed.err
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=out).out)
    assert proof["verified"]
    assert proof["mutants"]["killed"] >= 0.6 * proof["mutants"]["sampled"]


@pytest.mark.soak
@pytest.mark.parametrize("path", OLD, ids=lambda path: path.name)
def test_an_older_goal_survives_two_bad_answers(path: Path, user, tmp_path):
    goal = Goal.load(path)
    out = tmp_path / goal.package
    bad = iter(("Let me think about it first.", "I would rather not."))

    def reply(request: Request) -> str:
        return next(bad, "") or goal.reply(request) if question(request) == "patch" else goal.reply(request)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", goal.goal, "-o", out, "--json")
    assert ran.code == 0, ran.out + ran.err
    installs(out, "python", tmp_path)
    passes_outside(out, "python")
    assert commits_of(out) == [f"redstart: Create {goal.package}"]
