"""The values of a test's data that are changed."""

from __future__ import annotations

import json

import pytest

from redstart.toolkit.honesty.expected_data import changed_values


@pytest.mark.parametrize(
    ("data", "changed"),
    [
        ([{"input": 7, "expected": "VII"}], [{"input": 7, "expected": "VII~"}]),
        ({"cases": [{"in": 1, "want": {"a": [1, True]}}]}, {"cases": [{"in": 1, "want": {"a": [2, False]}}]}),
        ({"one": 1, "none": None}, {"one": 2, "none": None}),
    ],
)
def test_what_is_expected_is_changed_and_all_of_it_where_no_key_tells(data: object, changed: object) -> None:
    assert json.loads(changed_values(json.dumps(data).encode())) == changed


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"[null]"])
def test_what_has_no_values_stays(text: bytes) -> None:
    assert changed_values(text) == b""
