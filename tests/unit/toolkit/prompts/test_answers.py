from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from redstart.toolkit.prompts.answers import read_json


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
    ],
)
def test_json_is_found_whatever_is_around_it(text):
    assert read_json(text, Shape) == Shape(name="a", count=2)


@pytest.mark.parametrize("text", ["", "no json", '{"name": ', '{"count": 2}', "[1, 2]"])
def test_what_has_not_the_shape_is_none(text):
    assert read_json(text, Shape) is None


@given(st.text())
def test_nothing_makes_it_raise(text):
    assert read_json(text, Shape) is None or '"name"' in text
