"""Which tests the user selects."""

from __future__ import annotations

import pytest

from redstart.core.errors import ConfigError
from redstart.toolkit.suites.selection import build_selector

IDS = (
    "tests/test_a.py::TestOne::test_add[1-2]",
    "tests/test_a.py::TestOne::test_sub",
    "tests/test_a.py::test_address",
    "tests/deep/test_b.py::test_add",
    "tests.test_c.Case.test_add",
)


def list_selected(*targets: str, keyword: str = "") -> list[int]:
    chooses = build_selector(targets, keyword)
    return [number for number, id_ in enumerate(IDS) if chooses(id_)]


@pytest.mark.parametrize(
    ("target", "numbers"),
    [
        ("tests/test_a.py", [0, 1, 2]),
        ("./tests/test_a.py", [0, 1, 2]),
        ("tests/", [0, 1, 2, 3, 4]),
        (".", [0, 1, 2, 3, 4]),
        ("tests/test_a.py::TestOne", [0, 1]),
        ("tests/test_a.py::TestOne::test_add", [0]),
        ("tests/test_a.py::TestOne::test_add[1-2]", [0]),
        ("tests/test_a.py::test_add", []),
        ("tests/deep", [3]),
        ("tests/dee", []),
        ("tests.test_c", [4]),
        ("tests.test_c.Case", [4]),
        ("tests.test_c.Cas", []),
        ("tests/test_c.py", [4]),
    ],
)
def test_target_selects_a_test_or_its_container(target: str, numbers: list[int]) -> None:
    assert list_selected(target) == numbers


def test_several_targets_are_combined_and_none_selects_all() -> None:
    assert list_selected("tests/deep", "tests/test_a.py::test_address") == [2, 3]
    assert list_selected() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("keyword", "numbers"),
    [
        ("add", [0, 2, 3, 4]),
        ("ADD and testone", [0]),
        ("add and not address", [0, 3, 4]),
        ("sub or deep", [1, 3]),
        ("not (sub or deep)", [0, 2, 4]),
        ("not not sub", [1]),
        ("sub or add and deep", [1, 3]),
        ("[1-2]", [0]),
        ("test_c.Case", [4]),
        ("nothing", []),
    ],
)
def test_keyword_expression_selects_tests(keyword: str, numbers: list[int]) -> None:
    assert list_selected(keyword=keyword) == numbers


def test_target_and_keyword_both_apply() -> None:
    assert list_selected("tests/test_a.py", keyword="add") == [0, 2]


@pytest.mark.parametrize(
    "keyword", ["add and", "(add", "add)", "or add", "add sub", "add & sub", "()", "not", "a == b"]
)
def test_invalid_keyword_expression_is_rejected(keyword: str) -> None:
    with pytest.raises(ConfigError, match="-k"):
        build_selector((), keyword)
