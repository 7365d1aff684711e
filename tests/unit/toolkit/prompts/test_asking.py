"""Ask for an answer of one type: the exact error goes back to the model, a few times at most."""

from __future__ import annotations

import asyncio

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier
from redstart.core.errors import ModelBusy
from redstart.testing.model import ScriptedModel
from redstart.toolkit.prompts.answers import ParsedAnswer, schema
from redstart.toolkit.prompts.asking import REPAIRS, AnswerOutcome, ask_for, mend, repair_note
from redstart.toolkit.prompts.shapes import CardAnswer

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


def heard(*answers: str | Answer | Exception, repairs: int = REPAIRS) -> tuple[AnswerOutcome[CardAnswer], list[Ask]]:
    model = ScriptedModel(answers)
    return asyncio.run(ask_for(model, ASK, CardAnswer, repairs=repairs)), model.asks


def faulty(fault: AnswerFault, text: str = "") -> Answer:
    return Answer(text=text, model="m", fault=fault)


def test_an_answer_that_can_be_read_is_one_call_with_the_shape_of_the_answer():
    said, asks = heard(f"Sure:\n```json\n{GOOD}\n```")
    assert (said.value, said.fault, said.repairs) == (CARD, "", 0)
    assert [ask.messages for ask in asks] == [ASK.messages]
    assert asks[0].shape == schema(CardAnswer)


def test_the_exact_error_is_quoted_in_the_same_conversation():
    wrong = '{"summary": "s", "fix": "f"}'
    said, asks = heard(wrong, GOOD)
    assert (said.value, said.repairs) == (CARD, 1)
    assert asks[1].messages[:2] == ASK.messages
    told, note = asks[1].messages[2:]
    assert (told.role, told.text, note.role) == (Role.assistant, wrong, Role.user)
    assert "root_cause: Field required" in note.text
    assert asks[1].shape == asks[0].shape


def test_the_second_repair_shows_only_the_last_answer():
    said, asks = heard("first", '{"summary": 1}', GOOD)
    assert (said.value, said.repairs) == (CARD, 2)
    assert [message.text for message in asks[2].messages[2:3]] == ['{"summary": 1}']


def test_after_two_repairs_it_is_given_up_with_the_last_reason():
    said, asks = heard("one", "two", "three")
    assert (said.value, said.repairs, len(asks)) == (None, 2, 3)
    assert said.fault == "the answer holds no JSON object"
    assert said.answer.text == "three"


def test_what_is_copied_from_the_question_is_sent_back():
    said, asks = heard('{"summary": "in short", "root_cause": "r", "fix": "f"}', GOOD)
    assert said.value == CARD
    assert "copied" in asks[1].messages[-1].text


@pytest.mark.parametrize("fault", [AnswerFault.budget, AnswerFault.refused])
def test_a_fault_that_asking_again_does_not_mend_ends_it(fault):
    said, asks = heard(faulty(fault))
    assert (said.value, said.fault, len(asks)) == (None, fault.value, 1)
    said, asks = heard("no", faulty(fault))
    assert (said.value, said.fault, len(asks)) == (None, fault.value, 2)


def test_an_answer_that_was_cut_off_is_read_where_it_is_whole_and_asked_for_again_where_not():
    assert heard(faulty(AnswerFault.truncated, GOOD + " and so on, and"))[0].value == CARD
    said, asks = heard(faulty(AnswerFault.truncated, GOOD[:-8]), GOOD)
    assert (said.value, said.repairs) == (CARD, 1)
    assert "cut off at the token limit" in asks[1].messages[-1].text


def test_an_answer_that_went_round_in_circles_is_hardly_shown_again_and_asked_for_otherwise():
    said, asks = heard(faulty(AnswerFault.truncated, "(0, 1),\n" * 400), GOOD)
    assert said.value == CARD
    assert len(asks[1].messages[2].text) < 600
    assert "be shorter" in asks[1].messages[-1].text
    assert (asks[0].temperature, asks[1].temperature) == (0.0, 0.6)
    assert "be shorter" not in said.fault
    _, plain = heard("no JSON", GOOD)
    assert (plain[1].temperature, "shorter" in plain[1].messages[-1].text) == (0.0, False)


def test_an_empty_answer_is_asked_for_again_and_no_turn_is_empty():
    said, asks = heard(faulty(AnswerFault.empty), GOOD)
    assert said.value == CARD
    assert all(message.text.strip() for message in asks[1].messages)
    assert "was empty" in asks[1].messages[-1].text


def test_a_huge_answer_is_shown_again_in_part():
    _, asks = heard("x" * 50_000, GOOD)
    assert len(asks[1].messages[2].text) < 7000


def test_without_repairs_it_is_one_call_and_errors_of_the_model_pass():
    said, asks = heard("no", repairs=0)
    assert (said.value, len(asks)) == (None, 1)
    with pytest.raises(ModelBusy):
        heard(ModelBusy())


def test_an_answer_that_was_given_already_is_mended():
    def read(answer: Answer) -> ParsedAnswer[str]:
        return ParsedAnswer(answer.text) if "edit" in answer.text else ParsedAnswer(None, "no edit.")

    model = ScriptedModel(["an edit"])
    first = Answer(text="prose", model="m")
    said = asyncio.run(mend(model, ASK, first, read, note=repair_note, repairs=1))
    assert (said.value, said.repairs, len(model.asks)) == ("an edit", 1, 1)
    assert model.asks[0].messages[2].text == "prose"
    assert model.asks[0].messages[3].text.startswith("Your answer could not be used: no edit.\n")
