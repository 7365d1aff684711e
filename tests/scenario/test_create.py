"""Three goals become small tested programs: the tests are written first, without the code, and must fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.sample import sample_parameters
from support.scenarios import Goal, Program, Recorded, parse_question
from support.server import Reply, ScriptedServer, Wire

GOALS = [Goal.load(folder) for folder in sorted((Path(__file__).parent / "goals").iterdir())]


@pytest.mark.parametrize("goal", sample_parameters(GOALS, 1), ids=lambda goal: goal.name)
def test_goal_becomes_a_tested_program(goal: Goal, user, tmp_path):
    out = tmp_path / goal.package
    script = Recorded(goal.reply)
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai if goal is not GOALS[0] else Wire.anthropic)
        result = user.redstart("create", goal.goal, "-o", out, "--json")
        for_tests = next(request for request in server.requests if parse_question(request) == "reproduce")
    assert result.code == 0, result.out + result.err
    assert script.questions == ["plan", "reproduce", "patch", "patch"]
    code = [line.strip() for line in goal.wrong.splitlines() if line.strip().startswith("def ")]
    assert code
    assert not [line for line in code if line in for_tests.text]
    steps = {event["name"]: event["data"] for event in result.events if event["phase"] == "end"}
    assert steps["reproduce"]["red"] > 0
    assert steps["reproduce"]["passed"] == 0
    assert steps["test"]["fixed"] == steps["test"]["passed"] == steps["reproduce"]["written"] > 1
    assert result.ending["result"] == "verified"
    assert result.ending["attempts"] == 2
    assert result.ending["calls"] <= 2 * result.ending["attempts"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    outside = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=out, env=environ, capture_output=True
    )
    assert outside.returncode == 0, outside.stdout
    resume_result = user.redstart("resume", cwd=out)
    assert resume_result.code == 0
    assert str(out) in resume_result.out


def test_tests_without_assertions_are_rejected(user, tmp_path):
    goal = GOALS[0]
    empty = "tests/test_nothing.py\n<<<<<<< SEARCH\n=======\ndef test_it():\n    pass\n>>>>>>> REPLACE\n"
    with ScriptedServer(
        lambda request: empty if parse_question(request) == "reproduce" else goal.reply(request)
    ) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("create", goal.goal, "-o", tmp_path / "out", "--json", "--max-iters", "2")
    assert result.code == 1
    reasons = [event["data"]["reason"] for event in result.events if event["name"] == "decide" and event["data"]]
    assert reasons[0] == "the tests are not usable: tests/test_nothing.py asserts nothing"
    assert not (tmp_path / "out").exists()


def write_user_tests(goal: Goal, folder: Path) -> Path:
    """Write the tests of a goal to a file, as if by a user, and return its path."""
    folder.mkdir()
    file = folder / f"test_{goal.package}.py"
    file.write_text(goal.tests.partition("=======\n")[2].partition("\n>>>>>>> REPLACE")[0] + "\n")
    return file


def test_spec_tests_of_the_user_are_used(user, tmp_path):
    goal = next(goal for goal in GOALS if goal.name == "roman")
    user_tests, out = write_user_tests(goal, tmp_path / "mine"), tmp_path / goal.package
    script = Recorded(goal.reply)
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("create", goal.goal, "-o", out, "--spec-tests", user_tests, "--json")
    assert result.code == 0, result.out + result.err
    assert script.questions == ["patch", "patch"]
    assert (out / "tests" / user_tests.name).read_bytes() == user_tests.read_bytes()
    assert "they notice" in result.ending["reason"]


def test_spec_tests_that_pass_without_a_program_are_refused(user, tmp_path):
    user_tests = tmp_path / "test_nothing.py"
    user_tests.write_text("def test_nothing():\n    assert True\n")
    with ScriptedServer(lambda _: pytest.fail("nobody is to be asked")) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("create", "a shop", "-o", tmp_path / "out", "--spec-tests", user_tests, "--json")
    assert result.ending["result"] == "no_tests"
    assert "green without any program" in result.ending["reason"]


@pytest.mark.soak
def test_tests_that_detect_no_changes_are_refused(user, tmp_path):
    weak_program = Program.load(Path(__file__).parent / "programs" / "csvsum.script")
    out = tmp_path / weak_program.package
    with ScriptedServer(weak_program.reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("create", "-", "-o", out, "--max-iters", "1", "--json", told=weak_program.goal)
    assert result.code == 1, result.out + result.err
    assert re.fullmatch(r"the tests notice only \d of \d+ small changes to the program", result.ending["reason"])
    assert not out.exists()


def test_nonempty_directory_is_refused(user, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept.txt").write_text("mine")
    user.environ["OPENAI_API_KEY"] = "none"
    result = user.redstart("create", "anything", "-o", tmp_path / "out")
    assert result.code == 2
    assert "not empty" in result.err
    assert (tmp_path / "out" / "kept.txt").read_text() == "mine"


TIMES = "def times(a, b):\n    return a * b\n"
OF_TIMES = """def test_{name}():
    assert times({a}, {b}) == {product}
"""


@pytest.mark.soak
@pytest.mark.parametrize(("ending", "taken"), [("def test_cut():\n    assert times(4, 5) ==", 3), ("```\n", 3)])
def test_small_model_gets_a_brief_prompt_and_endless_tests_are_cut(user, tmp_path, ending, taken):
    cases = [("two", 2, 3, 6), ("zero", 0, 5, 0), ("far", -7, 9, -63)]
    tests = "\n\n".join(OF_TIMES.format(name=n, a=a, b=b, product=c) for n, a, b, c in cases)
    answer_text = f"tests/test_calc.py\n```python\nfrom calc import times\n\n\n{tests}\n\n{ending}"
    wrong_patch, right_patch = (
        f"calc/__init__.py\n```python\n{text}```\n" for text in (TIMES.replace("*", "+"), TIMES)
    )
    answers = {
        "reproduce": [Reply(answer_text, finish="stop" if ending == "```\n" else "length")],
        "patch": [wrong_patch, right_patch],
    }
    script = Recorded(lambda request: answers[parse_question(request)].pop(0))
    out = tmp_path / "calc"
    profile = '{"openai:scripted": {"context": 4096, "looks": 0, "brief": true}}'
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai)
        user.environ["REDSTART_MODELS__PROFILES"] = profile
        result = user.redstart("create", "A function times(a, b) that multiplies.", "-o", out, "--json")
        texts = [request.text for request in server.requests]
    assert result.code == 0, result.out + result.err
    assert script.questions == ["reproduce", "patch", "patch"]
    assert (out / "tests" / "test_calc.py").read_text().count("def test_") == taken
    assert (out / "calc" / "__init__.py").read_text() == TIMES
    assert max(map(len, texts)) < 2500
    assert "assert times(-7, 9) == -63" in texts[1]
    assert "return a + b" in texts[2]
