"""The values of a test's data that are changed."""

from __future__ import annotations

import json

import pytest

from redstart.toolkit.honesty.expected_data import change_values


@pytest.mark.parametrize(
    ("data", "changed"),
    [
        ([{"input": 7, "expected": "VII"}], [{"input": 7, "expected": "VII~"}]),
        ({"cases": [{"in": 1, "want": {"a": [1, True]}}]}, {"cases": [{"in": 1, "want": {"a": [2, False]}}]}),
        ({"one": 1, "none": None}, {"one": 2, "none": None}),
    ],
)
def test_expected_values_are_changed_or_all_values_if_no_key_marks_them(data: object, changed: object) -> None:
    assert json.loads(change_values(json.dumps(data).encode())) == changed


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"[null]"])
def test_data_without_values_is_unchanged(text: bytes) -> None:
    assert change_values(text) == b""
