"""A prompt fitted to a window."""

from __future__ import annotations

import re
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.fit import LeftOutPart, PromptPart, fit, fit_question, tokens
from redstart.toolkit.prompts.render import render, section

TEXTS = st.text(alphabet="ab é\n", max_size=120)
PARTS = st.lists(
    st.builds(
        lambda text, value, least: (text, value, least),
        TEXTS,
        st.floats(0, 100) | st.just(float("inf")),
        st.none() | st.integers(1, 30),
    ),
    max_size=8,
).map(lambda rows: [PromptPart(f"part {at}", *row) for at, row in enumerate(rows)])


def test_everything_is_shown_where_there_is_room():
    fitted = fit([PromptPart("b", "bbb", 1), PromptPart("a", "aaa", 9), PromptPart("none", " ", 5)], 100)
    assert (list(fitted.shown.items()), fitted.left_out) == ([("b", "bbb"), ("a", "aaa")], ())
    assert fitted.tokens == 2


def test_the_least_valuable_for_its_length_goes_first_and_is_named():
    parts = [PromptPart("long", "x" * 300, 10), PromptPart("short", "y" * 30, 5), PromptPart("idle", "z" * 30, 1)]
    fitted = fit(parts, 110)
    assert list(fitted.shown) == ["long", "short"]
    assert fitted.left_out == (LeftOutPart("idle", 10, True),)
    assert list(fit(parts, 25).shown) == ["short", "idle"]


def test_a_part_that_may_be_clipped_takes_the_room_that_is_left_and_says_how_much_is_missing():
    code = "".join(f"line {number}\n" for number in range(100))
    parts = [
        PromptPart("code", code, 50, least=20, wrap=partial(data, "a.py")),
        PromptPart("must", "m" * 30, float("inf")),
    ]
    fitted = fit(parts, 100)
    (left,) = fitted.left_out
    assert left.name == "code"
    assert not left.all
    assert left.tokens == tokens(data("a.py", code)) - tokens(fitted.shown["code"])
    assert fitted.shown["code"].startswith('<data from="a.py">\nline 0\n')
    assert fitted.shown["code"].endswith("line 99\n</data>")
    assert "[…]" in fitted.shown["code"]
    assert 90 <= fitted.tokens <= 100


def test_too_little_room_for_a_clipped_part_leaves_it_out():
    parts = [PromptPart("code", "c" * 300, 50, least=60), PromptPart("must", "m" * 150, float("inf"))]
    assert fit(parts, 100).left_out == (LeftOutPart("code", 100, True),)


@settings(deadline=None, max_examples=150)
@given(PARTS, st.integers(0, 120))
def test_it_fits_and_nothing_is_lost_without_a_word(parts, room):
    fitted = fit(parts, room)
    real = {part.name: part for part in parts if part.text.strip()}
    assert fitted.tokens == sum(map(tokens, fitted.shown.values())) <= room
    assert list(fitted.shown) == [name for name in real if name in fitted.shown]
    told = {left.name: left for left in fitted.left_out}
    for name, part in real.items():
        if name not in told:
            assert fitted.shown[name] == part.text
        elif told[name].all:
            assert name not in fitted.shown
            assert tokens(part.text) > room - fitted.tokens
        else:
            assert part.least is not None
            assert part.least <= tokens(fitted.shown[name]) < tokens(part.text) + 3
    assert fit(parts, room) == fitted


@settings(deadline=None, max_examples=100)
@given(PARTS, st.integers(1, 120))
def test_what_is_worth_more_for_its_length_is_not_dropped_for_what_is_worth_less(parts, room):
    whole = [part for part in parts if part.text.strip() and part.least is None]
    fitted = fit(whole, room)
    worth = {part.name: part.value / tokens(part.text) for part in whole}
    for left in fitted.left_out:
        better = [part for part in whole if worth[part.name] >= worth[left.name] and part.name in fitted.shown]
        part = next(item for item in whole if item.name == left.name)
        assert tokens(part.text) + sum(tokens(item.text) for item in better) > room


def sections() -> dict[str, str]:
    long = "\n".join(f"line {number} of the code" for number in range(300))
    return {
        "goal": section("Goal", data("user", "g" * 600)),
        "failing": section("Failing tests", data("test", "id: test_a\nmessage: 1 != 2"), data("test", "id: test_b")),
        "code": section("Code", data("a.py lines 1-300", long), data("b.py lines 1-2", "one\ntwo")),
        "findings": section("Static findings in this code", data("ruff", "a.py:1 F401 unused")),
        "ask": section("Now", "Do it."),
    }


def test_a_question_that_has_room_is_rendered_as_it_stands():
    messages = render("patch", **sections())
    assert fit_question("patch", 0, **sections()) == (messages, ())
    assert fit_question("patch", 100_000, **sections()) == (messages, ())


def test_a_question_loses_what_says_least_for_its_length_and_names_it():
    room = 1200
    question = fit_question("patch", room, **sections())
    said = question.messages[1].text
    assert sum(tokens(message.text) for message in question.messages) <= room + 5
    assert "g" * 600 in said
    assert "Do it." in said
    assert "1 != 2" in said
    assert "one\ntwo" in said
    assert "line 0 of the code" in said
    assert "line 150 of the code" not in said
    assert [name.partition(":")[0] for name in question.left_out] == ["code 1 (a.py lines 1-300)"]
    assert said.count("<data ") == said.count("</data>")


def test_a_section_that_lost_all_it_had_leaves_no_title():
    question = fit_question("patch", 10, **sections())
    said = question.messages[1].text
    assert "## Code" not in said
    assert "## Goal" in said
    assert "## Now" in said
    assert {name.partition(" ")[0] for name in question.left_out} == {"failing", "code", "findings"}


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(alphabet="ab<>/data\n é", max_size=200), max_size=4), st.integers(1, 900))
def test_however_little_room_there_is_no_passage_is_left_open(texts, room):
    blocks = [data(f"f{number}.py", text) for number, text in enumerate(texts)]
    question = fit_question("patch", room, code=section("Code", *blocks), ask=section("Now", "x"))
    said = question.messages[1].text
    assert len(re.findall(r"^<data ", said, re.MULTILINE)) == len(re.findall(r"^</data>$", said, re.MULTILINE))
    assert question.messages[0] == render("patch")[0]
