"""`create` in a working session: the program is written on a copy, tried there, corrected and submitted.

The scripted model knows the right edit only after a run has shown it how its first program fails.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
from pathlib import Path

import pytest

from redstart.core.chat import ToolCall
from redstart.toolkit.patching.reading.parse import parse
from support.sample import sample_parameters
from support.scenarios import Goal, Program, parse_question
from support.server import Reply, Request, ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
GOAL = Goal.load(HERE / "goals" / "colstats")
TESTS = "tests/test_colstats.py"
CALLS = 7
"""The recorded calls of the session: five answers and two runs."""


def edit_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the edits of an answer as tool calls."""
    edits = [{"path": edit.path, "search": edit.search, "replace": edit.text} for edit in parse(text).edits]
    whole = [edit if edit["search"].strip() else {"path": edit["path"], "text": edit["replace"]} for edit in edits]
    return tuple(call("edit", number, **arguments) for number, arguments in enumerate(whole))


def call(name: str, number: int = 0, **arguments: str) -> ToolCall:
    return ToolCall(id=f"{name}-{number}", name=name, arguments=json.dumps(arguments))


def list_results(request: Request) -> list[str]:
    return [turn["content"] for turn in request.body["messages"] if turn["role"] == "tool"]


def reply(request: Request) -> Reply | str:
    """Write the program, run its tests, and correct it only if the run shows the failure."""
    if parse_question(request) != "patch":
        return GOAL.reply(request)
    results = list_results(request)
    is_shown = bool(results) and all(item in results[-1] for item in (*GOAL.needs.ids, *GOAL.needs.assertion))
    turn = sum(message["role"] == "assistant" for message in request.body["messages"])
    turns = (
        edit_calls(GOAL.wrong),
        (call("run_tests", 1),),
        edit_calls(GOAL.right) if is_shown else (call("submit"),),
        (call("run_tests", 2),),
        (call("submit", why="the mean of the two middle values"),),
    )
    return Reply("", calls=tuple(item.model_copy(update={"id": f"{turn}-{item.id}"}) for item in turns[turn]))


@pytest.fixture
def session_user(user: User) -> User:
    user.environ["REDSTART_MODELS__PROFILES"] = '{"*": {"tools": true}}'
    return user


def test_program_is_corrected_within_its_first_attempt(session_user: User, tmp_path: Path):
    out = tmp_path / GOAL.package
    with ScriptedServer(reply) as server:
        session_user.uses(server, Wire.openai)
        result = session_user.redstart("create", GOAL.goal, "-o", out, "--session", "--json")
        first = next(request for request in server.requests if parse_question(request) == "patch")
        for_tests = next(request for request in server.requests if parse_question(request) == "reproduce")
    assert result.code == 0, result.out + result.err
    assert result.ending["result"] == "verified"
    assert result.ending["attempts"] == 1
    assert "they notice" in result.ending["reason"]
    assert not for_tests.tools
    assert {"edit", "run_tests", "run", "submit"} < set(first.tools)
    assert "not_this_code" not in first.tools
    assert GOAL.goal.splitlines()[0] in first.text
    assert "def test_median_of_an_even_number_of_values" in first.text
    assert (out / "colstats" / "stats.py").read_text().count("ordered[(len(ordered) - 1) // 2]") == 1
    replay = session_user.redstart("runs", "replay", result.events[0]["run"])
    assert replay.code == 0, replay.out + replay.err


def list_kill_points() -> list[str]:
    return ["before", *(f"{moment}:{number}" for number in range(CALLS) for moment in ("making", "made")), "after"]


@pytest.mark.parametrize("moment", sample_parameters(sorted(list_kill_points(), key="made:3".__ne__), 1))
def test_killed_session_asks_and_runs_nothing_twice(moment: str, session_user: User, tmp_path: Path):
    out = tmp_path / GOAL.package
    with ScriptedServer(reply) as server:
        session_user.uses(server, Wire.openai)
        crash = HERE / "drivers" / "crash.py"
        killed = session_user.python(crash, "patch", moment, "create", GOAL.goal, "-o", out, "--session")
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        run_id = json.loads(session_user.redstart("runs", "list", "--json").out)["run_id"]
        resume_result = session_user.redstart("resume", run_id)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        bodies = [str(request.body) for request in server.requests]
    assert len(bodies) == len(set(bodies)) == 7, "a plan, the tests and five turns of the session"
    assert (out / "colstats" / "stats.py").exists()
    with contextlib.closing(sqlite3.connect(session_user.home / "redstart.db")) as database:
        query = "SELECT ordinal, kind FROM journal WHERE step = 'patch' AND ordinal >= 0 ORDER BY position"
        kinds = database.execute(query).fetchall()
    assert [ordinal for ordinal, _ in kinds] == list(range(CALLS))
    assert [ordinal for ordinal, kind in kinds if kind == "sandbox"] == [2, 5]
    assert session_user.redstart("runs", "replay", run_id).code == 0


def test_tests_of_the_plan_cannot_be_edited(session_user: User, tmp_path: Path):
    """Weaken the tests with each tool that writes, then with an answer that proposes to change them."""
    weak = (
        f"TEST CHANGE: they ask too much\n\n{TESTS}\n<<<<<<< SEARCH\n=======\ndef test_it():\n    pass\n>>>>>>> REPLACE"
    )
    attacks = (
        call("edit", 1, path=TESTS, text="def test_it():\n    pass\n"),
        call("edit", 2, path="conftest.py", text="collect_ignore = ['tests']\n"),
        ToolCall(id="delete", name="edit", arguments=json.dumps({"path": TESTS, "delete": True})),
    )
    turns = [Reply("", calls=attacks), weak, Reply("", calls=(*edit_calls(GOAL.wrong), call("submit")))]
    seen: list[str] = []

    def attack(request: Request) -> Reply | str:
        if parse_question(request) != "patch":
            return GOAL.reply(request)
        seen.append(request.text)
        return turns[len(seen) - 1]

    out = tmp_path / GOAL.package
    with ScriptedServer(attack) as server:
        session_user.uses(server, Wire.openai)
        result = session_user.redstart(
            "create", GOAL.goal, "-o", out, "--session", "--max-attempts", "1", "--reflect", "never", "--json"
        )
    assert result.code == 1, result.out + result.err
    assert seen[1].count("refused: ") == len(attacks)
    assert "Your edits were not applied." in seen[2]
    steps = {event["name"]: event["data"] for event in result.events if event["phase"] == "end"}
    assert steps["test"]["passed"] == steps["reproduce"]["written"] - 1


def test_each_part_of_a_program_has_its_session(session_user: User, tmp_path: Path):
    program = Program.load(HERE / "pair.script")
    with ScriptedServer(program.reply) as server:
        session_user.uses(server, Wire.openai)
        result = session_user.redstart("create", program.goal, "-o", tmp_path / program.package, "--session", "--json")
        requests = [request for request in server.requests if parse_question(request) == "patch"]
    assert result.code == 0, result.out + result.err
    assert len(requests) == 3
    assert all("submit" in request.tools for request in requests)
