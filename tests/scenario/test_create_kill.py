"""kill -9 while the parts of a program are created: the resumed run ends the same and pays nothing twice."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from support.scenarios import Program
from support.server import ScriptedServer, Wire

HERE = Path(__file__).parent
QUESTIONS = 7
"""A plan, and the tests and edits of three parts."""
PLACES = [("decide", "after"), ("reproduce", "during"), ("test", "during"), ("patch", "after"), ("remember", "before")]


def make_case(step: str, moment: str) -> object:
    marks = () if (step, moment) in PLACES[1:2] else pytest.mark.soak
    return pytest.param(step, moment, id=f"{moment}-{step}", marks=marks)


@pytest.mark.parametrize(("step", "moment"), [make_case(*place) for place in PLACES])
def test_killed_creation_of_parts_resumes_without_paying_twice(step, moment, user, tmp_path):
    program = Program.load(HERE / "pair.script")
    out = tmp_path / program.package
    with ScriptedServer(program.reply) as server:
        user.uses(server, Wire.openai)
        killed = user.python(HERE / "drivers" / "crash.py", step, moment, "create", program.goal, "-o", out)
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        run_id = json.loads(user.redstart("runs", "list", "--json").out)["run_id"]
        resume_result = user.redstart("resume", run_id)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        bodies = [str(request.body) for request in server.requests]
    # Two parts run at once: only the open question of the other part is asked again.
    assert len(set(bodies)) == QUESTIONS
    assert len(bodies) <= QUESTIONS + 1
    assert (out / "pair" / "total.py").exists()
    rows = [json.loads(line) for line in user.redstart("runs", "list", "--all", "--json").out.splitlines()]
    assert sorted(row["run_id"] for row in rows) == [run_id, *(f"{run_id}.{number}" for number in (1, 2, 3))]
    assert {row["result"] for row in rows} == {"verified"}
    show_result = user.redstart("show", run_id)
    assert [line.split()[:3] for line in show_result.out.splitlines() if line.startswith("part ")] == [
        ["part", str(number), "kept"] for number in (1, 2, 3)
    ]
    assert user.redstart("runs", "replay", run_id).code == 0
