"""Three goals become small tested programs: the tests are written first, without the code, and must fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.sample import short_form
from support.scenarios import Goal, Program, Recorded, question
from support.server import Reply, ScriptedServer, Wire

GOALS = [Goal.load(folder) for folder in sorted((Path(__file__).parent / "goals").iterdir())]


@pytest.mark.parametrize("goal", short_form(GOALS, 1), ids=lambda goal: goal.name)
def test_create(goal: Goal, user, tmp_path):
    out = tmp_path / goal.package
    script = Recorded(goal.reply)
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai if goal is not GOALS[0] else Wire.anthropic)
        ran = user.redstart("create", goal.goal, "-o", out, "--json")
        for_tests = next(request for request in server.requests if question(request) == "reproduce")
    assert ran.code == 0, ran.out + ran.err
    assert script.questions == ["plan", "reproduce", "patch", "patch"]
    code = [line.strip() for line in goal.wrong.splitlines() if line.strip().startswith("def ")]
    assert code
    assert not [line for line in code if line in for_tests.text]
    steps = {event["name"]: event["data"] for event in ran.events if event["phase"] == "end"}
    assert steps["reproduce"]["red"] > 0
    assert steps["reproduce"]["passed"] == 0
    assert steps["test"]["fixed"] == steps["test"]["passed"] == steps["reproduce"]["written"] > 1
    assert ran.ending["result"] == "verified"
    assert ran.ending["attempts"] == 2
    assert ran.ending["calls"] <= 2 * ran.ending["attempts"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    outside = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=out, env=environ, capture_output=True
    )
    assert outside.returncode == 0, outside.stdout
    again = user.redstart("resume", cwd=out)
    assert again.code == 0
    assert str(out) in again.out


def test_tests_that_assert_nothing_are_not_taken(user, tmp_path):
    goal = GOALS[0]
    empty = "tests/test_nothing.py\n<<<<<<< SEARCH\n=======\ndef test_it():\n    pass\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: empty if question(request) == "reproduce" else goal.reply(request)) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", goal.goal, "-o", tmp_path / "out", "--json", "--max-iters", "2")
    assert ran.code == 1
    reasons = [event["data"]["reason"] for event in ran.events if event["name"] == "decide" and event["data"]]
    assert reasons[0] == "the tests are not usable: tests/test_nothing.py asserts nothing"
    assert not (tmp_path / "out").exists()


def given_tests(goal: Goal, folder: Path) -> Path:
    """Write the tests of a goal to a file, as if by a user, and return its path."""
    folder.mkdir()
    file = folder / f"test_{goal.package}.py"
    file.write_text(goal.tests.partition("=======\n")[2].partition("\n>>>>>>> REPLACE")[0] + "\n")
    return file


def test_the_users_own_tests_are_the_tests(user, tmp_path):
    goal = next(goal for goal in GOALS if goal.name == "roman")
    mine, out = given_tests(goal, tmp_path / "mine"), tmp_path / goal.package
    script = Recorded(goal.reply)
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", goal.goal, "-o", out, "--spec-tests", mine, "--json")
    assert ran.code == 0, ran.out + ran.err
    assert script.questions == ["patch", "patch"]
    assert (out / "tests" / mine.name).read_bytes() == mine.read_bytes()
    assert "they notice" in ran.ending["reason"]


def test_own_tests_that_ask_for_nothing_are_refused(user, tmp_path):
    mine = tmp_path / "test_nothing.py"
    mine.write_text("def test_nothing():\n    assert True\n")
    with ScriptedServer(lambda _: pytest.fail("nobody is to be asked")) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", "a shop", "-o", tmp_path / "out", "--spec-tests", mine, "--json")
    assert ran.ending["result"] == "no_tests"
    assert "green without any program" in ran.ending["reason"]


@pytest.mark.soak
def test_tests_that_notice_nothing_are_refused_in_the_end(user, tmp_path):
    weak = Program.load(Path(__file__).parent / "programs" / "csvsum.script")
    out = tmp_path / weak.package
    with ScriptedServer(weak.reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", "-", "-o", out, "--max-iters", "1", "--json", told=weak.goal)
    assert ran.code == 1, ran.out + ran.err
    assert re.fullmatch(r"the tests notice only \d of \d+ small changes to the program", ran.ending["reason"])
    assert not out.exists()


def test_a_folder_that_is_not_empty_is_refused(user, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept.txt").write_text("mine")
    user.environ["OPENAI_API_KEY"] = "none"
    ran = user.redstart("create", "anything", "-o", tmp_path / "out")
    assert ran.code == 2
    assert "not empty" in ran.err
    assert (tmp_path / "out" / "kept.txt").read_text() == "mine"


TIMES = "def times(a, b):\n    return a * b\n"
OF_TIMES = """def test_{name}():
    assert times({a}, {b}) == {product}
"""


@pytest.mark.soak
@pytest.mark.parametrize(("ending", "taken"), [("def test_cut():\n    assert times(4, 5) ==", 3), ("```\n", 3)])
def test_a_small_model_is_asked_in_few_words_and_its_endless_list_of_tests_ends_with_the_last_whole_one(
    user, tmp_path, ending, taken
):
    cases = [("two", 2, 3, 6), ("zero", 0, 5, 0), ("far", -7, 9, -63)]
    tests = "\n\n".join(OF_TIMES.format(name=n, a=a, b=b, product=c) for n, a, b, c in cases)
    said = f"tests/test_calc.py\n```python\nfrom calc import times\n\n\n{tests}\n\n{ending}"
    wrong, right = (f"calc/__init__.py\n```python\n{text}```\n" for text in (TIMES.replace("*", "+"), TIMES))
    answers = {"reproduce": [Reply(said, finish="stop" if ending == "```\n" else "length")], "patch": [wrong, right]}
    script = Recorded(lambda request: answers[question(request)].pop(0))
    out = tmp_path / "calc"
    profile = '{"openai:scripted": {"context": 4096, "looks": 0, "brief": true}}'
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai)
        user.environ["REDSTART_MODELS__PROFILES"] = profile
        ran = user.redstart("create", "A function times(a, b) that multiplies.", "-o", out, "--json")
        texts = [request.text for request in server.requests]
    assert ran.code == 0, ran.out + ran.err
    assert script.questions == ["reproduce", "patch", "patch"]
    assert (out / "tests" / "test_calc.py").read_text().count("def test_") == taken
    assert (out / "calc" / "__init__.py").read_text() == TIMES
    assert max(map(len, texts)) < 2500
    assert "assert times(-7, 9) == -63" in texts[1]
    assert "return a + b" in texts[2]
