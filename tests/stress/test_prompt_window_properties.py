"""A prompt fitted to a window."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts.fit_window import PromptPart, estimate_tokens, fit, fit_question
from redstart.toolkit.prompts.render import format_section, render

TEXTS = st.text(alphabet="ab é\n", max_size=120)
PARTS = st.lists(
    st.builds(
        lambda text, value, least: (text, value, least),
        TEXTS,
        st.floats(0, 100) | st.just(float("inf")),
        st.none() | st.integers(1, 30),
    ),
    max_size=8,
).map(lambda rows: [PromptPart(f"part {index}", *row) for index, row in enumerate(rows)])


@settings(deadline=None, max_examples=150)
@given(PARTS, st.integers(0, 120))
def test_prompt_fits_and_every_loss_is_reported(parts, budget):
    result = fit(parts, budget)
    nonempty_parts = {part.name: part for part in parts if part.text.strip()}
    assert result.tokens == sum(map(estimate_tokens, result.shown_parts.values())) <= budget
    assert list(result.shown_parts) == [name for name in nonempty_parts if name in result.shown_parts]
    omitted_parts = {omitted_part.name: omitted_part for omitted_part in result.left_out}
    for name, part in nonempty_parts.items():
        if name not in omitted_parts:
            assert result.shown_parts[name] == part.text
        elif omitted_parts[name].all:
            assert name not in result.shown_parts
            assert estimate_tokens(part.text) > budget - result.tokens
        else:
            assert part.min_tokens is not None
            assert part.min_tokens <= estimate_tokens(result.shown_parts[name]) < estimate_tokens(part.text) + 3
    assert fit(parts, budget) == result


@settings(deadline=None, max_examples=100)
@given(PARTS, st.integers(1, 120))
def test_more_valuable_part_is_not_dropped_for_a_less_valuable_part(parts, budget):
    fixed_parts = [part for part in parts if part.text.strip() and part.min_tokens is None]
    result = fit(fixed_parts, budget)
    value_per_token = {part.name: part.value / estimate_tokens(part.text) for part in fixed_parts}
    for omitted_part in result.left_out:
        better_parts = [
            part
            for part in fixed_parts
            if value_per_token[part.name] >= value_per_token[omitted_part.name] and part.name in result.shown_parts
        ]
        part = next(item for item in fixed_parts if item.name == omitted_part.name)
        assert estimate_tokens(part.text) + sum(estimate_tokens(item.text) for item in better_parts) > budget


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(alphabet="ab<>/data\n é", max_size=200), max_size=4), st.integers(1, 900))
def test_no_data_block_is_left_open_at_any_size(texts, budget):
    blocks = [wrap_untrusted(f"f{number}.py", text) for number, text in enumerate(texts)]
    question = fit_question("patch", budget, code=format_section("Code", *blocks), ask=format_section("Now", "x"))
    prompt = question.messages[1].text
    assert len(re.findall(r"^<data ", prompt, re.MULTILINE)) == len(re.findall(r"^</data>$", prompt, re.MULTILINE))
    assert question.messages[0] == render("patch")[0]
