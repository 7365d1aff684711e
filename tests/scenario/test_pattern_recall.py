"""A verified program becomes a pattern for the plan of similar programs, and of no others."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from redstart.core.pattern import SolutionPattern
from support.scenarios import Goal, Program, question
from support.server import ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
ROMAN = Goal.load(HERE / "goals" / "roman")
LIKE_ROMAN = "A library that converts whole numbers to Roman numerals and back again, refusing everything else."
UNLIKE = "A module with parse(text), which reads durations such as '1h 30m', '45s' or '2d' as a number of seconds."
STOPPED = 130
TITLE = "## Goals like this one that were reached before"


def kept(user: User) -> list[tuple[str, SolutionPattern]]:
    """Return every pattern in the run store, with its state."""
    connection = sqlite3.connect(next(user.home.rglob("*.db")))
    rows = connection.execute("SELECT state, body FROM patterns ORDER BY created").fetchall()
    connection.close()
    return [(state, SolutionPattern.model_validate_json(body)) for state, body in rows]


def plan_prompt(user: User, goal: str, out: Path) -> str:
    """Return the plan prompt for a goal. The run stops after the plan."""
    plan = json.dumps({"summary": "as asked", "subtasks": []})
    with ScriptedServer(lambda _: plan) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", goal, "-o", out, "--stop-after", "plan", "--json")
        assert ran.code == STOPPED, ran.out + ran.err
        (asked,) = server.requests
    assert question(asked) == "plan"
    return asked.text


def test_a_verified_program_is_shown_to_who_plans_one_like_it_and_to_nobody_else(user, tmp_path):
    with ScriptedServer(ROMAN.reply) as server:
        user.uses(server, Wire.openai)
        made = user.redstart("create", ROMAN.goal, "-o", tmp_path / "roman", "--json")
        first = next(request.text for request in server.requests if question(request) == "plan")
    assert made.ending["result"] == "verified", made.out + made.err
    assert TITLE not in first
    remembered = [event["data"] for event in made.events if (event["name"], event["phase"]) == ("remember", "end")]
    ((state, left),) = kept(user)
    assert state == "shown"
    assert [item.get("pattern") for item in remembered] == [None, left.id], "only the attempt that was green"
    assert (left.mode, left.outcome, left.goal) == ("create", "verified", ROMAN.goal)
    plan = json.loads(ROMAN.plan)
    assert (left.summary, left.subtasks) == (plan["summary"], tuple(item["title"] for item in plan["subtasks"]))
    roles = {part.path: part.role for part in left.shape}
    assert roles["roman/__init__.py"] == "package: STEPS, to_roman, from_roman"
    assert roles["tests/test_roman.py"].startswith("tests: ")
    assert roles["pyproject.toml"] == "project file"
    assert left.provenance["repo"] == "roman"

    like = plan_prompt(user, LIKE_ROMAN, tmp_path / "numerals")
    assert TITLE in like
    block = like.partition(TITLE)[2]
    assert f'<data from="memory {left.id}: create, verified, in roman">' in block
    assert plan["summary"] in block
    assert "- roman/__init__.py: package: STEPS, to_roman, from_roman" in block
    assert TITLE not in plan_prompt(user, UNLIKE, tmp_path / "durations")
    user.environ["REDSTART_TENANT"] = "another"
    assert TITLE not in plan_prompt(user, LIKE_ROMAN, tmp_path / "theirs")


@pytest.mark.soak
def test_a_program_that_is_not_verified_leaves_none(user, tmp_path):
    weak = Program.load(HERE / "programs" / "csvsum.script")
    with ScriptedServer(weak.reply) as server:
        user.uses(server, Wire.openai)
        out = tmp_path / weak.package
        ran = user.redstart("create", "-", "-o", out, "--max-iters", "1", "--json", told=weak.goal)
    assert ran.ending["result"] == "unsolved", ran.out + ran.err
    assert kept(user) == []
    assert TITLE not in plan_prompt(user, weak.goal, tmp_path / "again")


@pytest.mark.soak
def test_a_program_of_several_parts_leaves_one_of_the_whole(user, tmp_path):
    program = Program.load(HERE / "pair.script")
    with ScriptedServer(program.reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("create", program.goal, "-o", tmp_path / program.package, "--json")
    assert ran.ending["result"] == "verified", ran.out + ran.err
    ((state, left),) = kept(user)
    assert (state, left.goal) == ("shown", program.goal)
    assert left.subtasks == ("The first", "The second", "The sum")
    files = {part.path for part in left.shape}
    assert {"pair/first.py", "pair/second.py", "pair/total.py", "tests/test_the_first.py"} <= files
    assert "- pair/total.py: module: TOTAL" in plan_prompt(user, program.goal, tmp_path / "other")
