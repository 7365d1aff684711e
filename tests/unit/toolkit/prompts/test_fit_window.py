"""A prompt fitted to a window."""

from __future__ import annotations

from functools import partial

from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts.fit_window import LeftOutPart, PromptPart, estimate_tokens, fit, fit_question
from redstart.toolkit.prompts.render import format_section, render


def test_everything_is_shown_if_it_fits():
    result = fit([PromptPart("b", "bbb", 1), PromptPart("a", "aaa", 9), PromptPart("none", " ", 5)], 100)
    assert (list(result.shown_parts.items()), result.left_out) == ([("b", "bbb"), ("a", "aaa")], ())
    assert result.tokens == 2


def test_part_with_the_least_value_per_length_is_dropped_and_named():
    parts = [PromptPart("long", "x" * 300, 10), PromptPart("short", "y" * 30, 5), PromptPart("idle", "z" * 30, 1)]
    result = fit(parts, 110)
    assert list(result.shown_parts) == ["long", "short"]
    assert result.left_out == (LeftOutPart("idle", 10, True),)
    assert list(fit(parts, 25).shown_parts) == ["short", "idle"]


def test_clipped_part_fills_the_remaining_room_and_reports_the_rest():
    code = "".join(f"line {number}\n" for number in range(100))
    parts = [
        PromptPart("code", code, 50, min_tokens=20, wrap=partial(wrap_untrusted, "a.py")),
        PromptPart("must", "m" * 30, float("inf")),
    ]
    result = fit(parts, 100)
    (omitted_part,) = result.left_out
    assert omitted_part.name == "code"
    assert not omitted_part.all
    assert omitted_part.tokens == estimate_tokens(wrap_untrusted("a.py", code)) - estimate_tokens(
        result.shown_parts["code"]
    )
    assert result.shown_parts["code"].startswith('<data from="a.py">\nline 0\n')
    assert result.shown_parts["code"].endswith("line 99\n</data>")
    assert "[…]" in result.shown_parts["code"]
    assert 90 <= result.tokens <= 100


def test_clipped_part_is_left_out_if_the_room_is_too_small():
    parts = [PromptPart("code", "c" * 300, 50, min_tokens=60), PromptPart("must", "m" * 150, float("inf"))]
    assert fit(parts, 100).left_out == (LeftOutPart("code", 100, True),)


def build_sections() -> dict[str, str]:
    long = "\n".join(f"line {number} of the code" for number in range(300))
    return {
        "goal": format_section("Goal", wrap_untrusted("user", "g" * 600)),
        "failing": format_section(
            "Failing tests", wrap_untrusted("test", "id: test_a\nmessage: 1 != 2"), wrap_untrusted("test", "id: test_b")
        ),
        "code": format_section(
            "Code", wrap_untrusted("a.py lines 1-300", long), wrap_untrusted("b.py lines 1-2", "one\ntwo")
        ),
        "findings": format_section("Static findings in this code", wrap_untrusted("ruff", "a.py:1 F401 unused")),
        "ask": format_section("Now", "Do it."),
    }


def test_question_that_fits_is_rendered_unchanged():
    messages = render("patch", **build_sections())
    assert fit_question("patch", 0, **build_sections()) == (messages, ())
    assert fit_question("patch", 100_000, **build_sections()) == (messages, ())


def test_oversized_question_drops_the_least_valuable_part_and_names_it():
    budget = 1200
    question = fit_question("patch", budget, **build_sections())
    prompt = question.messages[1].text
    assert sum(estimate_tokens(message.text) for message in question.messages) <= budget + 5
    assert "g" * 600 in prompt
    assert "Do it." in prompt
    assert "1 != 2" in prompt
    assert "one\ntwo" in prompt
    assert "line 0 of the code" in prompt
    assert "line 150 of the code" not in prompt
    assert [name.partition(":")[0] for name in question.left_out] == ["code 1 (a.py lines 1-300)"]
    assert prompt.count("<data ") == prompt.count("</data>")


def test_section_that_lost_everything_has_no_title():
    question = fit_question("patch", 10, **build_sections())
    prompt = question.messages[1].text
    assert "## Code" not in prompt
    assert "## Goal" in prompt
    assert "## Now" in prompt
    assert {name.partition(" ")[0] for name in question.left_out} == {"failing", "code", "findings"}
