"""Steps that ask for a typed answer ask again if they cannot read it; a run never fails because of that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.core.change import EditKind
from redstart.core.chat import Ask, Role
from redstart.core.run import Effort, Limits, Mode, RunState, Step
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

TESTS = (
    "tests/test_it.py\n<<<<<<< SEARCH\n=======\nfrom calc import double\n\n\ndef test_it():\n    {}\n>>>>>>> REPLACE\n"
)
ASSERTING, IDLE = TESTS.format("assert double(2) == 4"), TESTS.format("double(2)")
PLAN = '{"summary": "do it", "subtasks": []}'


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def run_to_end(
    rig: Rig, reply: Callable[[Ask], str], until: Step | None = None, **begin_options: object
) -> tuple[RunState, list[Ask]]:
    async def go() -> RunState:
        run_id = await rig.begin(**begin_options)  # type: ignore[arg-type]
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, run_inline, last_step=until)).state

    model = rig.with_model(reply)
    return asyncio.run(go()), model.questions


def count_turns(ask: Ask) -> int:
    """Count the model's answers so far in this conversation."""
    return sum(message.role is Role.assistant for message in ask.messages)


def select_asks(asks: list[Ask], question: str) -> list[Ask]:
    return [ask for ask in asks if ask.question == question]


def test_card_is_requested_again_with_the_exact_error(rig):
    def reply(ask: Ask) -> str:
        if ask.question != "remember":
            return play.RIGHT
        return play.CARD if count_turns(ask) else '{"summary": "off by one"}'

    final_state, asks = run_to_end(rig, reply)
    cards = select_asks(asks, "remember")
    assert [count_turns(ask) for ask in cards] == [0, 1]
    assert "root_cause: Field required" in cards[1].messages[-1].text
    assert final_state.now.remember is not None
    assert final_state.now.remember.card is not None
    assert final_state.now.remember.card.root_cause == "one too many"
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


def test_unreadable_card_costs_two_more_requests_but_not_the_fix(rig):
    final_state, asks = run_to_end(rig, lambda ask: play.GARBAGE if ask.question == "remember" else play.RIGHT)
    assert final_state.result == "verified"
    assert len(select_asks(asks, "remember")) == 3
    assert final_state.now.remember is not None
    assert final_state.now.remember.card is not None
    assert final_state.now.remember.card.summary == "one too many"


def test_small_model_is_not_asked_for_a_card(rig):
    answer = f"{play.CODE}\n```python\n{play.BUGGY.replace('number + number + 1', 'number + number')}```\n"
    asks = QuestionOptions(edits=EditKind.whole, brief=True, asks_for_card=False)
    final_state, questions = run_to_end(rig, lambda _: answer, asks=asks)
    assert final_state.result == "verified"
    assert [ask.question for ask in questions] == ["patch"]
    assert final_state.now.remember is not None
    card = final_state.now.remember.card
    assert card is not None
    assert card.summary == f"changes {play.CODE}"
    assert card.fix == "- return number + number + 1; + return number + number"
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


def test_reflection_is_read_from_loose_json(rig):
    loose_json = "Well:\n```\n{'Root Cause': 'an extra one', try_next: 'leave it out',}\n```"

    def reply(ask: Ask) -> str:
        return {"reflect": loose_json, "plan": PLAN, "remember": play.CARD}.get(ask.question, play.WRONG)

    final_state, asks = run_to_end(rig, reply, effort=Effort.full, limits=Limits(attempts=2), until=Step.reflect)
    assert len(select_asks(asks, "reflect")) == 1
    assert final_state.now.reflect is not None
    assert (final_state.now.reflect.root_cause, final_state.now.reflect.try_next) == ("an extra one", "leave it out")


@pytest.mark.parametrize(("later_answer", "has_problem"), [(ASSERTING, False), (IDLE, True)])
def test_rejected_tests_are_requested_once_more_with_the_reason(rig, later_answer, has_problem):
    def reply(ask: Ask) -> str:
        if ask.question != "reproduce":
            return PLAN
        return later_answer if count_turns(ask) else IDLE

    final_state, asks = run_to_end(rig, reply, mode=Mode.create, goal="double a number", until=Step.reproduce)
    test_asks = select_asks(asks, "reproduce")
    assert [count_turns(ask) for ask in test_asks] == [0, 1]
    assert "tests/test_it.py asserts nothing" in test_asks[1].messages[-1].text
    assert final_state.now.reproduce is not None
    assert (final_state.now.reproduce.trouble == "no_tests") is has_problem


def test_patch_without_edits_is_requested_again_in_the_same_attempt(rig):
    def reply(ask: Ask) -> str:
        if ask.question != "patch":
            return play.CARD
        return play.RIGHT if count_turns(ask) else play.GARBAGE

    final_state, asks = run_to_end(rig, reply, limits=Limits(attempts=1))
    assert final_state.result == "verified"
    patches = select_asks(asks, "patch")
    assert [count_turns(ask) for ask in patches] == [0, 1]
    assert "the answer holds no edit" in patches[1].messages[-1].text
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


def test_unreadable_plan_is_requested_again_and_then_skipped(rig):
    final_state, asks = run_to_end(
        rig, lambda ask: {"plan": play.GARBAGE, "patch": play.RIGHT}.get(ask.question, play.CARD), effort=Effort.full
    )
    assert final_state.result == "verified"
    assert len(select_asks(asks, "plan")) == 3
    assert final_state.now.plan is not None
    assert final_state.now.plan.fault


def test_plan_uses_a_schema_where_no_textual_tool_call_is_needed(rig):
    _, asks = run_to_end(
        rig, lambda ask: {"plan": PLAN, "patch": play.RIGHT}.get(ask.question, play.CARD), effort=Effort.full
    )
    assert select_asks(asks, "plan")[0].shape is not None
