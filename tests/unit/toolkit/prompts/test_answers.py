"""What is read from an answer, and what is refused: a wrong reading is worse than none."""

from __future__ import annotations

import json
import time

import pytest
from pydantic import BaseModel

from redstart.toolkit.prompts.answer_types import SHAPES, CardAnswer, PlanAnswer, ReflectionAnswer
from redstart.toolkit.prompts.answers import LONGEST, build_schema, read_answer, read_json

PLAN = {"summary": "Do it.", "subtasks": [{"title": "A", "criteria": ["x", "y"]}, {"title": "B", "criteria": ["z"]}]}
CARD = {"summary": "s", "root_cause": "r", "fix": "f", "debug_steps": ["one", "two"]}


class Shape(BaseModel):
    name: str
    count: int = 0


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "a", "count": 2}',
        'Here you are:\n```json\n{"name": "a", "count": 2}\n```\nGood luck!',
        'I think {this} is it: {"name": "a", "count": 2} as you see',
        '{"other": 1} and then {"name": "a", "count": 2}',
        "{'name': 'a', 'count': 2,}",
        "{name: 'a', // the name\n count: 2 /* so many */}",
        "{“name”: “a”， “count”：2}",
        '\ufeff{"count": 2, "name": "a"',
        '<think>{"name": "no", "count": 7}</think>{"name": "a", "count": 2}',
        'I see.</think>{"name": "a", "count": 2}',
        '{"name": "a", "count": 2}\n{"name": "a", "count": 2}',
        '"{\\"name\\": \\"a\\", \\"count\\": 2}"',
        '{\\"name\\": \\"a\\", \\"count\\": 2}',
        "{&quot;name&quot;: &quot;a&quot;, &quot;count&quot;: 2}",
        '{"tool": "respond", "arguments": {"Name": "a", "Count": 2}}',
        '{{"name": "a", "count": 2}}',
        '"name": "a",\n"count": 2',
        '{"name": "a"\n "count": 2}',
        '{"name": """a""", "count": 2}',
        '{"name": "" + "a", "count": 2}',
    ],
)
def test_answer_is_found_in_any_surrounding_text(text):
    assert read_json(text, Shape) == Shape(name="a", count=2)


@pytest.mark.parametrize("text", ["", "no json", '{"name": ', '{"count": 2}', "[1, 2]", '{"name": null}', "{" * 500])
def test_answer_of_the_wrong_shape_is_none_with_a_reason(text):
    reading = read_answer(text, Shape)
    assert reading.value is None
    assert reading.error


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ('{"name": "a"} or {"name": "b"}', "differ"),
        ('{"name": "a", "name": "b"}', "twice"),
        ('{"name": "a"}, "count": 2}', "closed before"),
        ('{"name": "a"}\n"count": 2}', "closed before"),
        ('{"name": "say "hi", "x": 1 there"}', "a comma or the end was expected"),
        ('{"name": "one" "two"}', "comma"),
        ('{"name": a}', "without quotes"),
        ('{"nom": "a"}', "fields that were asked for: name, count"),
        ('{"name": "a", "count": [1]}', "count"),
        ('{"name": "a", # count", "count": 2}', "comment"),
        ("<think>{'name': 'a'}", "no JSON"),
        ("x" * (LONGEST + 1), "longer"),
    ],
)
def test_ambiguous_answer_is_refused_with_a_reason(text, phrase):
    reading = read_answer(text, Shape)
    assert reading.value is None
    assert phrase in reading.error


def test_inner_quotes_are_read_if_only_one_reading_is_left():
    text = '{"summary": "the "name" field is "None" there", "subtasks": []}'
    assert read_json(text, PlanAnswer) == PlanAnswer(summary='the "name" field is "None" there')


def test_invalid_escapes_stay_literal_and_valid_escapes_are_decoded():
    assert read_json(r'{"name": "\d+ \_ \u00e9 \ud83d\ude00 \ud83d \x41 \frac{9}{5} \bword"}', Shape) == Shape(
        name="\\d+ \\_ é 😀 \ufffd A \\frac{9}{5} \\bword"
    )


def test_swapped_bracket_and_quote_are_repaired_but_not_inside_text():
    text = (
        '{"summary": "s", "subtasks": [{"title": "A", "criteria": ["x", "y.]"}, {"title": "B", "criteria": ["[z]"]}]}'
    )
    plan_answer = read_json(text, PlanAnswer)
    assert plan_answer is not None
    assert [subtask.criteria for subtask in plan_answer.subtasks] == [["x", "y."], ["[z]"]]


def list_prefixes(answer: dict[str, object]) -> list[str]:
    text = json.dumps(answer)
    return [text[:end] for end in range(1, len(text))]


@pytest.mark.parametrize("truncated", [True, False])
def test_truncated_card_is_read_only_if_required_fields_are_complete(truncated):
    full_card = CardAnswer.model_validate(CARD)
    readings = [read_answer(text, CardAnswer, truncated=truncated).value for text in list_prefixes(CARD)]
    assert any(readings)
    for parsed_card in readings:
        if parsed_card is not None:
            assert parsed_card.model_copy(update={"debug_steps": []}) == full_card.model_copy(
                update={"debug_steps": []}
            )
            assert parsed_card.debug_steps == full_card.debug_steps[: len(parsed_card.debug_steps)]


def test_truncated_plan_keeps_only_complete_subtasks():
    full_plan = PlanAnswer.model_validate(PLAN)
    subtask_counts: set[int] = set()
    for text in list_prefixes(PLAN):
        parsed_plan = read_answer(text, PlanAnswer, truncated=True).value
        if parsed_plan is not None:
            assert parsed_plan.summary == full_plan.summary
            assert parsed_plan.subtasks == full_plan.subtasks[: len(parsed_plan.subtasks)]
            subtask_counts.add(len(parsed_plan.subtasks))
    assert subtask_counts == {0, 1, 2}


def test_text_that_ends_with_the_answer_is_complete_unless_truncated():
    text = '{"summary": "s", "root_cause": "r", "fix": "use the "'
    assert read_answer(text, CardAnswer, truncated=True).value is None
    assert read_answer(text + " \n", CardAnswer, truncated=True).value is None
    assert read_answer(text, CardAnswer) == (CardAnswer(summary="s", root_cause="r", fix="use the "), "")


def test_example_copied_from_the_question_is_not_an_answer():
    question = 'Answer with JSON alone:\n{"summary": "what to do", "subtasks": [{"title": "...", "criteria": ["c"]}]}'
    copied = read_answer('{"summary": "what to do", "subtasks": []}', PlanAnswer, question=question)
    assert copied.value is None
    assert "copied" in copied.error
    assert read_answer('{"root_cause": "...", "what_failed": "<reason>"}', ReflectionAnswer).value is None
    text = 'As in {"summary": "what to do"}:\n{"summary": "Fix it", "subtasks": [{"title": "T", "criteria": ["..."]}]}'
    assert read_answer(text, PlanAnswer, question=question).value == PlanAnswer.model_validate(
        {"summary": "Fix it", "subtasks": [{"title": "T"}]}
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"debug_steps": "one"}, ["one"]),
        ({"debug_steps": [{"step": "one"}, {"text": "two"}]}, ["one", "two"]),
        ({"debug_steps": '["one"]'}, ["one"]),
        ({"debug_steps": None}, []),
        ({"debug_steps": [1, True]}, ["1", "true"]),
        ({"debug_steps": [["one", "two"]]}, ["one", "two"]),
        ({"debug_steps": [{"type": "string"}]}, None),
        ({"debug_steps": [["one"], ["two"]]}, None),
    ],
)
def test_value_is_coerced_only_without_loss(fields, expected):
    card_answer = read_json(json.dumps({**CARD, **fields}), CardAnswer)
    assert (card_answer and card_answer.debug_steps) == expected


def test_misnamed_list_is_reported():
    renamed_fields = {"summary": "s", "tasks": [{"title": "A"}]}
    assert "tasks: no such field" in read_answer(json.dumps(renamed_fields), PlanAnswer).error
    assert read_json(json.dumps({"summary": "s", "notes": "n"}), PlanAnswer) == PlanAnswer(summary="s")


def test_schema_has_no_titles_and_lists_required_fields():
    plan_schema = build_schema(PlanAnswer)
    assert '"title": "' not in json.dumps(plan_schema)
    assert plan_schema["required"] == ["summary"]
    assert set(SHAPES) == {"plan", "patch", "reflect", "remember"}


@pytest.mark.parametrize("text", ['{"a":"', "{", '{"name": "' + '"x ', "{}", '{"name": [', "#\n", '"a"+'])
def test_malicious_text_is_read_quickly(text):
    began = time.process_time()
    read_answer(text * (LONGEST // 10 // len(text)), Shape)
    assert time.process_time() - began < 5
