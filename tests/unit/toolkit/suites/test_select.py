"""Which tests the user selects."""

from __future__ import annotations

import pytest

from redstart.core.errors import ConfigError
from redstart.toolkit.suites.select import chooser

IDS = (
    "tests/test_a.py::TestOne::test_add[1-2]",
    "tests/test_a.py::TestOne::test_sub",
    "tests/test_a.py::test_address",
    "tests/deep/test_b.py::test_add",
    "tests.test_c.Case.test_add",
)


def chosen(*targets: str, keyword: str = "") -> list[int]:
    chooses = chooser(targets, keyword)
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
def test_a_target_is_a_test_or_whatever_holds_tests(target: str, numbers: list[int]) -> None:
    assert chosen(target) == numbers


def test_several_targets_and_none() -> None:
    assert chosen("tests/deep", "tests/test_a.py::test_address") == [2, 3]
    assert chosen() == [0, 1, 2, 3, 4]


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
def test_an_expression(keyword: str, numbers: list[int]) -> None:
    assert chosen(keyword=keyword) == numbers


def test_both_bind() -> None:
    assert chosen("tests/test_a.py", keyword="add") == [0, 2]


@pytest.mark.parametrize(
    "keyword", ["add and", "(add", "add)", "or add", "add sub", "add & sub", "()", "not", "a == b"]
)
def test_an_expression_that_cannot_be_read(keyword: str) -> None:
    with pytest.raises(ConfigError, match="-k"):
        chooser((), keyword)
