"""The source of a failing test, as far as the question does not show it already."""

from __future__ import annotations

from redstart.core.context import Chunk, Context
from redstart.core.run import Suite
from redstart.testing.states import make_case
from redstart.toolkit.retrieval.test_source import TestSourceReader
from redstart.toolkit.suites.suite_directory import TreeView

TESTS = """import pytest


@pytest.fixture
def cart(prices):
    return dict(prices)


class TestCart:
    def test_total(self, cart, tax):
        total = sum(cart.values())
        assert total == 3
        assert tax


def test_unrelated():
    pass
"""
FILES = {
    "web/tests/test_cart.py": TESTS,
    "web/tests/conftest.py": "def tax():\n    return 1\n\n\ndef unused():\n    return 2\n",
    "web/conftest.py": "def prices():\n    return {}\n",
    "other/conftest.py": "def tax():\n    return 'of another suite'\n",
}
ID = "tests/test_cart.py::TestCart::test_total[3]"


def read_source(detail: str = "", context: Context | None = None, id_: str = ID) -> str:
    view = TreeView(Suite(runner="pytest", folder="web"), FILES, lambda path: FILES[path].encode())
    reader = TestSourceReader(view.snapshot_paths, view.read, view.find_file, context)
    return reader.read(make_case(id_, detail=detail))


def test_test_is_shown_whole_with_its_fixtures():
    source = read_source()
    assert source.startswith("tests/test_cart.py lines 10-13:\n    def test_total(self, cart, tax):\n")
    assert "tests/test_cart.py lines 4-6:\n@pytest.fixture\ndef cart(prices):" in source
    assert "tests/conftest.py lines 1-2:\ndef tax():\n    return 1" in source
    for absent in ("unused", "another suite", "test_unrelated"):
        assert absent not in source


def test_lines_that_the_traceback_shows_are_not_repeated():
    whole = "\n".join(f">  {line}" if "== 3" in line else f"    {line}" for line in TESTS.splitlines()[9:13])
    assert "def test_total" not in read_source(whole)
    assert "def cart" in read_source(whole)
    assert "def test_total" in read_source(whole.rpartition("\n")[0])


def test_lines_that_the_code_section_shows_are_not_repeated():
    def show(start: int, end: int) -> Context:
        chunk = Chunk(path="web/tests/test_cart.py", start=start, end=end, score=1.0, source="test")
        return Context(chunks=(chunk,))

    assert "def test_total" not in read_source(context=show(10, 13))
    assert "def test_total" in read_source(context=show(10, 12))


def test_unknown_test_has_no_source():
    assert read_source(id_="tests/test_none.py::test_a") == ""
    assert read_source(id_="tests/test_cart.py") == ""
