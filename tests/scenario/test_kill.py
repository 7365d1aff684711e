"""kill -9 before, during and after each of the eleven steps: the resumed run ends the same and pays nothing twice."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redstart.core.run import Step
from support.alike import mask_fields
from support.scenarios import Scenario, parse_question
from support.server import Request, ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")
CALLS = 3
"""Two patches and a card. The scenario needs two attempts, so that it reaches every step."""


def load_final_state(user: User, repo: Path) -> dict[str, Any]:
    show_result = user.redstart("show", "--json", cwd=repo)
    assert show_result.code == 0, show_result.err
    return mask_fields(json.loads(show_result.out), "runs")  # depends on the duration of the tests


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, project) -> dict[str, Any]:
    """Return the final state of a run that was not killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    repo = folder / "projects" / SCENARIO.name
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    user = User(folder, project)
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo).code == 0
    return load_final_state(user, repo)


SOAK = [pytest.mark.soak]
DURING = (Step.patch, Step.test)


def iter_kill_points() -> Iterator[Any]:
    """Yield the kill points. By default only those during the paid step and the longest one; all take minutes."""
    for step in Step:
        for moment in ("before", "during", "after"):
            prompt = moment == "during" and step in DURING
            yield pytest.param(step, moment, id=f"{step.value}-{moment}", marks=() if prompt else SOAK)


@pytest.mark.parametrize(("step", "moment"), [*iter_kill_points()])
def test_killed_run_resumes_without_paying_twice(step: Step, moment: str, user, repo_of, undisturbed):
    repo = repo_of(SCENARIO.name)
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        killed = user.python(HERE / "drivers" / "crash.py", step.value, moment, "fix", repo)
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        resume_result = user.redstart("resume", cwd=repo)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        bodies = [str(request.body) for request in server.requests]
    assert len(bodies) == len(set(bodies)) == CALLS
    assert load_final_state(user, repo) == undisturbed


LESSON = {"when": "A value is wrong by a little", "advice": "Look at the border of the loop first"}
AT_ONCE = next(one for folder in sorted((HERE / "repos").iterdir()) if not (one := Scenario.load(folder)).feedback)
"""A scenario that the first attempt solves, so that this attempt saves a card."""


@pytest.mark.parametrize("moment", [pytest.param("before", marks=SOAK), "during", pytest.param("after", marks=SOAK)])
def test_killed_run_saves_its_card_and_lesson_once(moment: str, user, repo_of):
    """Check a card, a lesson and its use in the next run."""
    repo = repo_of(AT_ONCE.name)

    def reply(request: Request) -> str:
        answer = AT_ONCE.reply(request)
        return json.dumps({**json.loads(answer), **LESSON}) if parse_question(request) == "remember" else answer

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        for step in (Step.remember, Step.decide):
            killed = user.python(HERE / "drivers" / "crash.py", step.value, moment, "fix", repo)
            assert killed.code == -signal.SIGKILL, killed.out + killed.err
            resume_result = user.redstart("resume", cwd=repo)
            assert resume_result.code == 0, resume_result.out + resume_result.err
        assert len(server.requests) == 4, "two patches and two cards"
    with contextlib.closing(sqlite3.connect(user.home / "redstart.db")) as database:
        cards = [run for (run,) in database.execute("SELECT run_id FROM cards ORDER BY created")]
        assert len(set(cards)) == len(cards) == 2
        lessons = database.execute("SELECT id, run_id, same_as FROM lessons ORDER BY created").fetchall()
        (first_lesson, _, _), _ = lessons
        assert [row[1:] for row in lessons] == [(cards[0], ""), (cards[1], first_lesson)]
        assert database.execute("SELECT lesson, run_id FROM uses").fetchall() == [(first_lesson, cards[1])]
