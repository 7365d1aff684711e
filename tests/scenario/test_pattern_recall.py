"""A verified program becomes a pattern for the plan of similar programs, and of no others."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from redstart.core.pattern import SolutionPattern
from support.scenarios import Goal, Program, parse_question
from support.server import ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
ROMAN = Goal.load(HERE / "goals" / "roman")
LIKE_ROMAN = "A library that converts whole numbers to Roman numerals and back again, refusing everything else."
UNLIKE = "A module with parse(text), which reads durations such as '1h 30m', '45s' or '2d' as a number of seconds."
STOPPED = 130
TITLE = "## Goals like this one that were reached before"


def load_patterns(user: User) -> list[tuple[str, SolutionPattern]]:
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
        result = user.redstart("create", goal, "-o", out, "--stop-after", "plan", "--json")
        assert result.code == STOPPED, result.out + result.err
        (request,) = server.requests
    assert parse_question(request) == "plan"
    return request.text


def test_verified_program_is_shown_only_to_plans_of_similar_programs(user, tmp_path):
    with ScriptedServer(ROMAN.reply) as server:
        user.uses(server, Wire.openai)
        create_result = user.redstart("create", ROMAN.goal, "-o", tmp_path / "roman", "--json")
        first_prompt = next(request.text for request in server.requests if parse_question(request) == "plan")
    assert create_result.ending["result"] == "verified", create_result.out + create_result.err
    assert TITLE not in first_prompt
    remember_events = [
        event["data"] for event in create_result.events if (event["name"], event["phase"]) == ("remember", "end")
    ]
    ((state, pattern),) = load_patterns(user)
    assert state == "shown"
    assert [item.get("pattern") for item in remember_events] == [None, pattern.id], "only the attempt that was green"
    assert (pattern.mode, pattern.outcome, pattern.goal) == ("create", "verified", ROMAN.goal)
    plan = json.loads(ROMAN.plan)
    assert (pattern.summary, pattern.subtasks) == (plan["summary"], tuple(item["title"] for item in plan["subtasks"]))
    roles = {part.path: part.role for part in pattern.shape}
    assert roles["roman/__init__.py"] == "package: STEPS, to_roman, from_roman"
    assert roles["tests/test_roman.py"].startswith("tests: ")
    assert roles["pyproject.toml"] == "project file"
    assert pattern.provenance["repo"] == "roman"

    similar_prompt = plan_prompt(user, LIKE_ROMAN, tmp_path / "numerals")
    assert TITLE in similar_prompt
    block = similar_prompt.partition(TITLE)[2]
    assert f'<data from="memory {pattern.id}: create, verified, in roman">' in block
    assert plan["summary"] in block
    assert "- roman/__init__.py: package: STEPS, to_roman, from_roman" in block
    assert TITLE not in plan_prompt(user, UNLIKE, tmp_path / "durations")
    user.environ["REDSTART_TENANT"] = "another"
    assert TITLE not in plan_prompt(user, LIKE_ROMAN, tmp_path / "theirs")


@pytest.mark.soak
def test_unverified_program_leaves_no_pattern(user, tmp_path):
    weak_program = Program.load(HERE / "programs" / "csvsum.script")
    with ScriptedServer(weak_program.reply) as server:
        user.uses(server, Wire.openai)
        out = tmp_path / weak_program.package
        result = user.redstart("create", "-", "-o", out, "--max-iters", "1", "--json", told=weak_program.goal)
    assert result.ending["result"] == "unsolved", result.out + result.err
    assert load_patterns(user) == []
    assert TITLE not in plan_prompt(user, weak_program.goal, tmp_path / "again")


@pytest.mark.soak
def test_program_of_several_parts_leaves_one_pattern_of_the_whole(user, tmp_path):
    program = Program.load(HERE / "pair.script")
    with ScriptedServer(program.reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("create", program.goal, "-o", tmp_path / program.package, "--json")
    assert result.ending["result"] == "verified", result.out + result.err
    ((state, pattern),) = load_patterns(user)
    assert (state, pattern.goal) == ("shown", program.goal)
    assert pattern.subtasks == ("The first", "The second", "The sum")
    files = {part.path for part in pattern.shape}
    assert {"pair/first.py", "pair/second.py", "pair/total.py", "tests/test_the_first.py"} <= files
    assert "- pair/total.py: module: TOTAL" in plan_prompt(user, program.goal, tmp_path / "other")
