"""What a question says about how to write the tests of a new program."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.testing.states import make_spec
from redstart.toolkit.prompts.projects import (
    describe_brief_program_answer,
    describe_brief_test_answer,
    describe_test_rules,
)


def create_suite(runner: str) -> Suite:
    return Suite(runner=runner, command=(runner,), environment="")


def test_properties_are_offered_only_where_they_can_be_written():
    options = {"mode": "create", "offers": ("hypothesis",)}
    rules_by_runner = {
        item: describe_test_rules(make_spec(suite=create_suite(item), **options)) for item in ("pytest", "node")
    }
    assert "a property with Hypothesis" in rules_by_runner["pytest"]
    assert "a property with Hypothesis" not in rules_by_runner["node"]


@pytest.mark.parametrize(
    ("runner", "tests", "program"),
    [
        ("pytest", "tests/test_calc.py\n```python\n", "calc/__init__.py\n```python\n"),
        ("node", "test/first.test.js\n```js\n", "src/index.js\n```js\n"),
    ],
)
def test_small_model_gets_the_paths_of_the_files_to_write(runner, tests, program):
    run_spec = make_spec(mode="create", suite=create_suite(runner), repo="calc")
    assert tests in describe_brief_test_answer(run_spec)
    assert program in describe_brief_program_answer(run_spec)
    assert "{" not in describe_brief_test_answer(run_spec) + describe_brief_program_answer(run_spec)
