"""Two bugs that a model fixes one at a time: the second attempt goes on from what the first one fixed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from redstart.app.runs import RunRequest, create_fix_run, get_result_snapshot, go_on, replay
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_app
from redstart.core.run import Decision, Level, Limits, Result, RetryBase, RunState, Step
from redstart.engines.inline import run_inline
from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer

CODE = "def double(n):\n    return n * 3\n\n\ndef half(n):\n    return n // 3\n"
TEST = """from numbers_kept import double, half


def test_double():
    assert double(4) == 8


def test_half():
    assert half(8) == 4
"""
FIRST = (
    "WHY: double multiplies by three.\n\nnumbers_kept.py\n"
    "<<<<<<< SEARCH\n    return n * 3\n=======\n    return n * 2\n>>>>>>> REPLACE\n"
)
SECOND = FIRST.replace("double multiplies", "half divides").replace("n * 3", "n // 3").replace("n * 2", "n // 2")
BREAKING = SECOND + FIRST.partition("\n\n")[2].replace("n * 2", "n")
"""Fixes two tests of three and breaks another."""
MORE_TESTS = """

def test_half_of_six():
    assert half(6) == 3


def test_double_of_one():
    assert double(1) == 3
"""


class Outcome(NamedTuple):
    state: RunState
    decisions: list[Decision]
    questions: list[str]
    """The user's text of each question for edits."""
    diff: str
    replayed: RunState


def play(answers: list[str], folder: Path, *, fresh: bool = False, code: str = CODE, test: str = TEST) -> Outcome:
    """Play a run in which the model gives these answers in turn."""
    repo = folder / "repo"
    repo.mkdir()
    (repo / "numbers_kept.py").write_text(code)
    (repo / "test_numbers.py").write_text(test)
    remaining_answers = iter(answers)

    def reply(request: Request) -> str:
        return next(remaining_answers) if parse_question(request) == "patch" else CARD

    with ScriptedServer(reply) as server:
        models = Models(strong="openai:scripted", fast="openai:scripted", base_url=server.openai_url)

        async def go() -> Outcome:
            with open_app(Settings(home=folder / "home", models=models)) as base_app:
                app = base_app.with_sandbox().with_model()
                request = RunRequest(
                    Limits(attempts=len(answers)), verify=Level.quick, own_python=True, max_tool_calls=0, fresh=fresh
                )
                state = (await go_on(app, (await create_fix_run(app, repo, request)).run_id, run_inline)).state
                snapshot = get_result_snapshot(state)
                diff = app.trees.diff(state.spec.base, snapshot).decode() if snapshot else ""
                rows = await app.adapters.store.list_steps(state.run_id)
                decisions = [Decision.model_validate_json(row.artifact) for row in rows if row.step is Step.decide]
                questions = [
                    request.messages[-1][1] for request in server.requests if parse_question(request) == "patch"
                ]
                return Outcome(state, decisions, questions, diff, (await replay(app, state.run_id)).state)

        return asyncio.run(go())


def test_second_attempt_goes_on_from_what_the_first_fixed(tmp_path: Path):
    outcome = play([FIRST, SECOND], tmp_path)
    assert outcome.state.result is Result.verified, outcome.state.reason
    assert outcome.decisions[0].retry_base is RetryBase.patched
    assert outcome.decisions[0].retry_base_reason == "this patch fixed 1 test and broke none"
    question = outcome.questions[1]
    assert "return n * 2" in question
    assert "return n * 3" not in question
    failing = question.partition("## Failing tests")[2].partition("## ")[0]
    assert "test_half" in failing
    assert "test_double" not in failing
    assert ("+    return n * 2" in outcome.diff, "+    return n // 2" in outcome.diff) == (True, True)
    assert outcome.replayed == outcome.state


def test_fresh_attempts_start_from_the_original_code(tmp_path: Path):
    outcome = play([FIRST, SECOND], tmp_path, fresh=True)
    assert outcome.state.result is Result.unsolved
    assert [decision.retry_base for decision in outcome.decisions] == [None, None]
    assert "return n * 3" in outcome.questions[1]


def test_patch_that_breaks_another_test_is_not_kept(tmp_path: Path):
    outcome = play([BREAKING, FIRST], tmp_path, test=TEST + MORE_TESTS)
    assert outcome.decisions[0].retry_base is RetryBase.original
    assert outcome.decisions[0].retry_base_reason == "no patch has fixed a test without breaking another"
    assert "return n * 3" in outcome.questions[1]
