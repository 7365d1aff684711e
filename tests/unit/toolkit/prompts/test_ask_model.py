"""Ask for an answer of one type: the exact error goes back to the model, a few times at most."""

from __future__ import annotations

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier
from redstart.core.errors import ModelBusy
from redstart.testing.model import ScriptedModel
from redstart.toolkit.prompts.answer_types import CardAnswer
from redstart.toolkit.prompts.answers import ParsedAnswer, build_schema
from redstart.toolkit.prompts.ask_model import REPAIRS, AnswerOutcome, ask_for, repair_answer, repair_note

GOOD = '{"summary": "s", "root_cause": "r", "fix": "f"}'
CARD = CardAnswer(summary="s", root_cause="r", fix="f")
ASK = Ask(
    question="remember",
    tier=Tier.fast,
    messages=(
        Message(role=Role.system, text='Answer with JSON: {"summary": "in short"}'),
        Message(role=Role.user, text="go"),
    ),
)


async def ask_for_card(
    *answers: str | Answer | Exception, repairs: int = REPAIRS
) -> tuple[AnswerOutcome[CardAnswer], list[Ask]]:
    model = ScriptedModel(answers)
    return await ask_for(model, ASK, CardAnswer, repairs=repairs), model.questions


def create_faulty_answer(fault: AnswerFault, text: str = "") -> Answer:
    return Answer(text=text, model="m", fault=fault)


async def test_readable_answer_takes_one_call_that_sends_the_schema():
    outcome, asks = await ask_for_card(f"Sure:\n```json\n{GOOD}\n```")
    assert (outcome.value, outcome.fault, outcome.repairs) == (CARD, "", 0)
    assert [ask.messages for ask in asks] == [ASK.messages]
    assert asks[0].shape == build_schema(CardAnswer)


async def test_exact_error_is_quoted_in_the_same_conversation():
    wrong_answer = '{"summary": "s", "fix": "f"}'
    outcome, asks = await ask_for_card(wrong_answer, GOOD)
    assert (outcome.value, outcome.repairs) == (CARD, 1)
    assert asks[1].messages[:2] == ASK.messages
    sent_answer, note = asks[1].messages[2:]
    assert (sent_answer.role, sent_answer.text, note.role) == (Role.assistant, wrong_answer, Role.user)
    assert "root_cause: Field required" in note.text
    assert asks[1].shape == asks[0].shape


async def test_second_repair_shows_only_the_last_answer():
    outcome, asks = await ask_for_card("first", '{"summary": 1}', GOOD)
    assert (outcome.value, outcome.repairs) == (CARD, 2)
    assert [message.text for message in asks[2].messages[2:3]] == ['{"summary": 1}']


async def test_two_failed_repairs_end_with_the_last_reason():
    outcome, asks = await ask_for_card("one", "two", "three")
    assert (outcome.value, outcome.repairs, len(asks)) == (None, 2, 3)
    assert outcome.fault == "the answer holds no JSON object"
    assert outcome.answer.text == "three"


async def test_answer_copied_from_the_question_is_sent_back():
    outcome, asks = await ask_for_card('{"summary": "in short", "root_cause": "r", "fix": "f"}', GOOD)
    assert outcome.value == CARD
    assert "copied" in asks[1].messages[-1].text


@pytest.mark.parametrize("fault", [AnswerFault.budget, AnswerFault.refused])
async def test_fault_that_asking_again_cannot_fix_ends_the_attempt(fault):
    outcome, asks = await ask_for_card(create_faulty_answer(fault))
    assert (outcome.value, outcome.fault, len(asks)) == (None, fault.value, 1)
    outcome, asks = await ask_for_card("no", create_faulty_answer(fault))
    assert (outcome.value, outcome.fault, len(asks)) == (None, fault.value, 2)


async def test_truncated_answer_is_read_if_complete_and_requested_again_if_not():
    assert (await ask_for_card(create_faulty_answer(AnswerFault.truncated, GOOD + " and so on, and")))[0].value == CARD
    outcome, asks = await ask_for_card(create_faulty_answer(AnswerFault.truncated, GOOD[:-8]), GOOD)
    assert (outcome.value, outcome.repairs) == (CARD, 1)
    assert "cut off at the token limit" in asks[1].messages[-1].text


async def test_looping_answer_is_shortened_and_requested_with_more_variation():
    outcome, asks = await ask_for_card(create_faulty_answer(AnswerFault.truncated, "(0, 1),\n" * 400), GOOD)
    assert outcome.value == CARD
    assert len(asks[1].messages[2].text) < 600
    assert "be shorter" in asks[1].messages[-1].text
    assert (asks[0].temperature, asks[1].temperature) == (0.0, 0.6)
    assert "be shorter" not in outcome.fault
    _, plain_asks = await ask_for_card("no JSON", GOOD)
    assert (plain_asks[1].temperature, "shorter" in plain_asks[1].messages[-1].text) == (0.0, False)


async def test_empty_answer_is_requested_again_without_an_empty_turn():
    outcome, asks = await ask_for_card(create_faulty_answer(AnswerFault.empty), GOOD)
    assert outcome.value == CARD
    assert all(message.text.strip() for message in asks[1].messages)
    assert "was empty" in asks[1].messages[-1].text


async def test_huge_answer_is_quoted_in_part():
    _, asks = await ask_for_card("x" * 50_000, GOOD)
    assert len(asks[1].messages[2].text) < 7000


async def test_zero_repairs_make_one_call_and_model_errors_propagate():
    outcome, asks = await ask_for_card("no", repairs=0)
    assert (outcome.value, len(asks)) == (None, 1)
    with pytest.raises(ModelBusy):
        await ask_for_card(ModelBusy())


async def test_existing_answer_is_repaired():
    def read(answer: Answer) -> ParsedAnswer[str]:
        return ParsedAnswer(answer.text) if "edit" in answer.text else ParsedAnswer(None, "no edit.")

    model = ScriptedModel(["an edit"])
    first_answer = Answer(text="prose", model="m")
    outcome = await repair_answer(model, ASK, first_answer, read, note=repair_note, repairs=1)
    assert (outcome.value, outcome.repairs, len(model.questions)) == ("an edit", 1, 1)
    assert model.questions[0].messages[2].text == "prose"
    assert model.questions[0].messages[3].text.startswith("Your answer could not be used: no edit.\n")
