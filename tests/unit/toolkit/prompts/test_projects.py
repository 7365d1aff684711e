"""What a question says about how to write the tests of a new program."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.testing.states import spec
from redstart.toolkit.prompts.projects import brief_answer_with_program, brief_answer_with_tests, rules_of_tests


def suite(runner: str) -> Suite:
    return Suite(runner=runner, command=(runner,), environment="")


def test_properties_are_offered_where_they_can_be_written():
    offers = {"mode": "create", "offers": ("hypothesis",)}
    offered = {item: rules_of_tests(spec(suite=suite(item), **offers)) for item in ("pytest", "node")}
    assert "a property with Hypothesis" in offered["pytest"]
    assert "a property with Hypothesis" not in offered["node"]


@pytest.mark.parametrize(
    ("runner", "tests", "program"),
    [
        ("pytest", "tests/test_calc.py\n```python\n", "calc/__init__.py\n```python\n"),
        ("node", "test/first.test.js\n```js\n", "src/index.js\n```js\n"),
    ],
)
def test_a_small_model_is_shown_the_paths_of_what_it_writes(runner, tests, program):
    asked = spec(mode="create", suite=suite(runner), repo="calc")
    assert tests in brief_answer_with_tests(asked)
    assert program in brief_answer_with_program(asked)
    assert "{" not in brief_answer_with_tests(asked) + brief_answer_with_program(asked)
