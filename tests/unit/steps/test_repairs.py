"""Steps that ask for a typed answer ask again if they cannot read it; a run never fails because of that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.core.chat import Ask, Role
from redstart.core.run import Effort, Limits, Mode, RunState, Step
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
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
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def ran(
    rig: Rig, reply: Callable[[Ask], str], until: Step | None = None, **begin: object
) -> tuple[RunState, list[Ask]]:
    async def go() -> RunState:
        run_id = await rig.begin(**begin)  # type: ignore[arg-type]
        claim = await rig.adapters.store.claim(run_id)
        return (await drive(rig.adapters, claim, inline, until=until)).state

    model = rig.with_model(reply)
    return asyncio.run(go()), model.asks


def turns(ask: Ask) -> int:
    """Count the model's answers so far in this conversation."""
    return sum(message.role is Role.assistant for message in ask.messages)


def asked(asks: list[Ask], question: str) -> list[Ask]:
    return [ask for ask in asks if ask.question == question]


def test_a_card_is_asked_for_again_with_the_exact_error(rig):
    def reply(ask: Ask) -> str:
        if ask.question != "remember":
            return play.RIGHT
        return play.CARD if turns(ask) else '{"summary": "off by one"}'

    ended, asks = ran(rig, reply)
    cards = asked(asks, "remember")
    assert [turns(ask) for ask in cards] == [0, 1]
    assert "root_cause: Field required" in cards[1].messages[-1].text
    assert ended.now.remember is not None
    assert ended.now.remember.card is not None
    assert ended.now.remember.card.root_cause == "one too many"
    assert asyncio.run(replay(rig.adapters, ended.run_id)).state == ended


def test_a_card_that_never_comes_costs_two_more_questions_and_not_the_fix(rig):
    ended, asks = ran(rig, lambda ask: play.GARBAGE if ask.question == "remember" else play.RIGHT)
    assert ended.result == "verified"
    assert len(asked(asks, "remember")) == 3
    assert ended.now.remember is not None
    assert ended.now.remember.card is not None
    assert ended.now.remember.card.summary == "one too many"


def test_a_reflection_is_read_from_loose_json(rig):
    loose = "Well:\n```\n{'Root Cause': 'an extra one', try_next: 'leave it out',}\n```"

    def reply(ask: Ask) -> str:
        return {"reflect": loose, "plan": PLAN, "remember": play.CARD}.get(ask.question, play.WRONG)

    ended, asks = ran(rig, reply, effort=Effort.full, limits=Limits(attempts=2), until=Step.reflect)
    assert len(asked(asks, "reflect")) == 1
    assert ended.now.reflect is not None
    assert (ended.now.reflect.root_cause, ended.now.reflect.try_next) == ("an extra one", "leave it out")


@pytest.mark.parametrize(("later", "trouble"), [(ASSERTING, False), (IDLE, True)])
def test_tests_that_cannot_be_taken_are_asked_for_once_more_with_the_reason(rig, later, trouble):
    def reply(ask: Ask) -> str:
        if ask.question != "reproduce":
            return PLAN
        return later if turns(ask) else IDLE

    ended, asks = ran(rig, reply, mode=Mode.create, goal="double a number", until=Step.reproduce)
    wanted = asked(asks, "reproduce")
    assert [turns(ask) for ask in wanted] == [0, 1]
    assert "tests/test_it.py asserts nothing" in wanted[1].messages[-1].text
    assert ended.now.reproduce is not None
    assert (ended.now.reproduce.trouble == "no_tests") is trouble


def test_a_patch_without_an_edit_is_asked_for_once_more_in_the_same_attempt(rig):
    def reply(ask: Ask) -> str:
        if ask.question != "patch":
            return play.CARD
        return play.RIGHT if turns(ask) else play.GARBAGE

    ended, asks = ran(rig, reply, limits=Limits(attempts=1))
    assert ended.result == "verified"
    patches = asked(asks, "patch")
    assert [turns(ask) for ask in patches] == [0, 1]
    assert "the answer holds no edit" in patches[1].messages[-1].text
    assert asyncio.run(replay(rig.adapters, ended.run_id)).state == ended


def test_a_plan_that_cannot_be_read_is_asked_for_again_and_then_done_without(rig):
    ended, asks = ran(
        rig, lambda ask: {"plan": play.GARBAGE, "patch": play.RIGHT}.get(ask.question, play.CARD), effort=Effort.full
    )
    assert ended.result == "verified"
    assert len(asked(asks, "plan")) == 3
    assert ended.now.plan is not None
    assert ended.now.plan.fault


def test_a_plan_is_held_to_its_shape_where_no_look_has_to_be_written(rig):
    _, asks = ran(rig, lambda ask: {"plan": PLAN, "patch": play.RIGHT}.get(ask.question, play.CARD), effort=Effort.full)
    assert asked(asks, "plan")[0].shape is not None
