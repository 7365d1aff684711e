"""What is read from an answer, and what is refused: a wrong reading is worse than none."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from redstart.toolkit.prompts.answers import LONGEST, read_answer, read_json, schema
from redstart.toolkit.prompts.shapes import SHAPES, CardAnswer, PlanAnswer, ReflectionAnswer

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
def test_an_answer_is_found_whatever_is_around_it(text):
    assert read_json(text, Shape) == Shape(name="a", count=2)


@pytest.mark.parametrize("text", ["", "no json", '{"name": ', '{"count": 2}', "[1, 2]", '{"name": null}', "{" * 500])
def test_what_has_not_the_shape_is_none_and_says_why(text):
    reading = read_answer(text, Shape)
    assert reading.value is None
    assert reading.error


@pytest.mark.parametrize(
    ("text", "word"),
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
def test_what_may_mean_two_things_is_refused_with_the_reason(text, word):
    reading = read_answer(text, Shape)
    assert reading.value is None
    assert word in reading.error


def test_quotes_inside_a_text_are_read_where_only_one_reading_is_left():
    text = '{"summary": "the "name" field is "None" there", "subtasks": []}'
    assert read_json(text, PlanAnswer) == PlanAnswer(summary='the "name" field is "None" there')


def test_escapes_that_json_has_not_stand_for_themselves_and_coded_ones_are_decoded():
    assert read_json(r'{"name": "\d+ \_ \u00e9 \ud83d\ude00 \ud83d \x41 \frac{9}{5} \bword"}', Shape) == Shape(
        name="\\d+ \\_ é 😀 \ufffd A \\frac{9}{5} \\bword"
    )


def test_a_bracket_and_a_quote_that_changed_places_are_put_right_and_brackets_of_a_text_are_not():
    text = (
        '{"summary": "s", "subtasks": [{"title": "A", "criteria": ["x", "y.]"}, {"title": "B", "criteria": ["[z]"]}]}'
    )
    found = read_json(text, PlanAnswer)
    assert found is not None
    assert [subtask.criteria for subtask in found.subtasks] == [["x", "y."], ["[z]"]]


def cuts(answer: dict[str, object]) -> list[str]:
    text = json.dumps(answer)
    return [text[:end] for end in range(1, len(text))]


@pytest.mark.parametrize("truncated", [True, False])
def test_a_cut_card_is_read_only_where_all_that_is_required_is_there_whole(truncated):
    whole = CardAnswer.model_validate(CARD)
    readings = [read_answer(text, CardAnswer, truncated=truncated).value for text in cuts(CARD)]
    assert any(readings)
    for found in readings:
        if found is not None:
            assert found.model_copy(update={"debug_steps": []}) == whole.model_copy(update={"debug_steps": []})
            assert found.debug_steps == whole.debug_steps[: len(found.debug_steps)]


def test_of_a_cut_plan_only_whole_subtasks_stay():
    whole = PlanAnswer.model_validate(PLAN)
    seen: set[int] = set()
    for text in cuts(PLAN):
        found = read_answer(text, PlanAnswer, truncated=True).value
        if found is not None:
            assert found.summary == whole.summary
            assert found.subtasks == whole.subtasks[: len(found.subtasks)]
            seen.add(len(found.subtasks))
    assert seen == {0, 1, 2}


def test_a_text_that_ends_with_the_answer_is_whole_only_where_no_limit_ended_it():
    text = '{"summary": "s", "root_cause": "r", "fix": "use the "'
    assert read_answer(text, CardAnswer, truncated=True).value is None
    assert read_answer(text + " \n", CardAnswer, truncated=True).value is None
    assert read_answer(text, CardAnswer) == (CardAnswer(summary="s", root_cause="r", fix="use the "), "")


def test_the_questions_own_example_is_no_answer():
    asked = 'Answer with JSON alone:\n{"summary": "what to do", "subtasks": [{"title": "...", "criteria": ["c"]}]}'
    copied = read_answer('{"summary": "what to do", "subtasks": []}', PlanAnswer, asked=asked)
    assert copied.value is None
    assert "copied" in copied.error
    assert read_answer('{"root_cause": "...", "what_failed": "<reason>"}', ReflectionAnswer).value is None
    text = 'As in {"summary": "what to do"}:\n{"summary": "Fix it", "subtasks": [{"title": "T", "criteria": ["..."]}]}'
    assert read_answer(text, PlanAnswer, asked=asked).value == PlanAnswer.model_validate(
        {"summary": "Fix it", "subtasks": [{"title": "T"}]}
    )


@pytest.mark.parametrize(
    ("given", "meant"),
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
def test_a_value_is_bent_to_its_kind_only_where_nothing_is_lost(given, meant):
    found = read_json(json.dumps({**CARD, **given}), CardAnswer)
    assert (found and found.debug_steps) == meant


def test_a_list_under_another_name_is_not_passed_over():
    renamed = {"summary": "s", "tasks": [{"title": "A"}]}
    assert "tasks: no such field" in read_answer(json.dumps(renamed), PlanAnswer).error
    assert read_json(json.dumps({"summary": "s", "notes": "n"}), PlanAnswer) == PlanAnswer(summary="s")


def test_a_schema_has_no_titles_and_names_every_field():
    made = schema(PlanAnswer)
    assert '"title": "' not in json.dumps(made)
    assert made["required"] == ["summary"]
    assert set(SHAPES) == {"plan", "patch", "reflect", "remember"}


@settings(deadline=None)
@given(st.text(), st.booleans())
def test_nothing_makes_it_raise(text, truncated):
    assert read_answer(text, Shape, truncated=truncated).value is None or "name" in text.casefold()


@settings(deadline=None)
@given(st.data())
def test_one_lost_or_doubled_mark_never_makes_another_text(data):
    """Braces, brackets, commas, colons: the result is the intended text, a closed part of it, or nothing."""
    text = json.dumps(PLAN)
    at = data.draw(st.sampled_from([place for place, mark in enumerate(text) if mark in '{}[],:"']))
    broken = text[:at] + data.draw(st.sampled_from(["", text[at] * 2, *"{}[],:"])) + text[at + 1 :]
    found = read_answer(broken, PlanAnswer).value
    if found is not None:
        texts = [found.summary, *(item for task in found.subtasks for item in (task.title, *task.criteria))]
        assert set(texts) == {"Do it.", "A", "x", "y", "B", "z"}


@pytest.mark.parametrize("text", ['{"a":"', "{", '{"name": "' + '"x ', "{}", '{"name": [', "#\n", '"a"+'])
def test_reading_takes_no_minutes_whatever_the_text(text):
    began = time.process_time()
    read_answer(text * (LONGEST // 10 // len(text)), Shape)
    assert time.process_time() - began < 5
