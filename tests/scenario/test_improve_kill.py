"""kill -9 anywhere in any cycle: the run, resumed as often as needed, ends the same and asks nothing twice."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.sample import sample_parameters
from support.scenarios import parse_question
from support.server import Request, ScriptedServer, Wire

HERE = Path(__file__).parent
CODE = "def total(numbers):\n    return sum(numbers)\n"
NAMES = ("one", "garbage", "two")
ASKED = ["plan", "reproduce", "patch", "plan", "plan", "plan", "plan", "reproduce", "patch", "patch"]
"""The plan of the second cycle is never readable; the first patch of the third cycle does not apply."""


def reply(request: Request) -> str:
    """Answer by the question alone, however often the command was killed before."""
    finished_cycles = set(re.findall(r"cycle (\d)", request.text)) if parse_question(request) == "plan" else set()
    name = (
        NAMES[len(finished_cycles)]
        if parse_question(request) == "plan"
        else re.findall(r"add the function (\w+)", request.text)[-1]
    )
    if name == "garbage":
        return "I would rather talk about the weather."
    if parse_question(request) == "plan":
        return json.dumps({"kind": "feature", "title": f"add the function {name}", "criteria": []})
    if parse_question(request) == "reproduce":
        test = f"from bag import {name}\n\n\ndef test_{name}():\n    assert {name}() == 1\n"
        return f"SURE: high\n\ntests/test_{name}.py\n<<<<<<< SEARCH\n=======\n{test}>>>>>>> REPLACE\n"
    search = "def total(numbers):\n" if name == "one" or "Already tried" in request.text else "def nothing():\n"
    new = f"def {name}():\n    return 1\n\n\ndef total(numbers):\n"
    return f"WHY: it is asked for\n\nbag.py\n<<<<<<< SEARCH\n{search}=======\n{new}>>>>>>> REPLACE\n"


KILLS = [("record", 5), ("commit", 4), ("create", 1)]


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "count"), sample_parameters([pytest.param(*kill) for kill in KILLS], 1))
def test_repeatedly_killed_run_ends_the_same_and_asks_nothing_twice(user, tmp_path, kind, count):
    repo = tmp_path / "projects" / "bag"
    repo.mkdir(parents=True)
    (repo / "bag.py").write_text(CODE)
    (repo / "test_total.py").write_text("from bag import total\n\n\ndef test_total():\n    assert total([1]) == 1\n")
    (repo / "conftest.py").write_text("")
    command = ["improve", str(repo), "--no-cap", "--pause", "0", "--max-iters", "3"]
    deaths = 0
    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        result = user.python(HERE / "drivers" / "crash_after.py", str(count), kind, *command, cwd=repo)
        while result.code == -signal.SIGKILL:
            deaths += 1
            result = user.python(HERE / "drivers" / "crash_after.py", str(count), kind, "resume", cwd=repo)
        question_names = [parse_question(request) for request in server.requests]
    assert result.code == 0, result.out + result.err
    assert deaths >= 3
    assert question_names == ASKED
    assert "kept 2 improvements of 3 cycles" in result.out
    replay_result = user.redstart("runs", "replay", cwd=repo)
    assert "0 tokens spent" in replay_result.out, replay_result.err
    assert user.redstart("apply", cwd=repo).code == 0
    assert re.findall(r"^def (\w+)", (repo / "bag.py").read_text(), re.MULTILINE) == ["one", "two", "total"]
    outside = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repo, capture_output=True, check=False
    )
    assert outside.returncode == 0
