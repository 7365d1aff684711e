from __future__ import annotations

import pytest

from redstart.toolkit.suites.new_tests.new_test_count import count_tests

PYTHON = """
import pytest
from shop import price

CASES = [1, 2, 3]


def helper(): ...


def test_one():
    assert price(1) == 1


@pytest.mark.parametrize("x", [1, 2, 3])
@pytest.mark.parametrize(("y", "z"), [(1, 2), (3, 4)])
def test_table(x, y, z):
    assert price(x) == y


@pytest.mark.parametrize("x", CASES)
def test_named_table(x):
    assert price(x)


class TestMore:
    async def test_two(self):
        assert price(2) == 2

    def helper(self): ...
"""
NODE = "import test from 'node:test';\ntest('a', () => {});\n  it('b', () => {});\ncontest('c');\n"


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({"tests/test_shop.py": PYTHON.encode()}, 9),
        ({"test/a.test.js": NODE.encode()}, 2),
        ({"tests/test_a.py": b"def test_a(:", "tests/data.txt": None}, 0),
    ],
)
def test_tests_are_counted_from_their_source(files, count):
    assert count_tests(files) == count
