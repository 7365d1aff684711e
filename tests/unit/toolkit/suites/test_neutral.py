"""The driver that calls tests without a runner, in surroundings that do not look like a test run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.core.change import Snapshot
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.toolkit.honesty.examination import GreenPatch
from redstart.toolkit.honesty.neutral_surroundings import CallResult, Dimension, Surroundings, read_results
from redstart.toolkit.languages.python.neutral import FAR_SURROUNDINGS, NEAR_SURROUNDINGS, PythonDriver
from redstart.toolkit.suites.request import SuiteRequest
from redstart.toolkit.suites.suite_directory import TreeView

pytestmark = pytest.mark.slow

Execute = Callable[[Path, SuiteRequest], Completed]
Called = Callable[..., dict[str, CallResult]]

PLAIN_TEST = """
    from slug import slug


    def test_slug():
        assert slug("A  B") == "a-b"
"""


@pytest.fixture
def called(tmp_path: Path, execute: Execute, write: Callable[..., Path]) -> Called:
    """Call tests of a tree with these files; return the result of each."""

    def call(
        files: dict[str, str], tests: list[str], surroundings: Surroundings = NEAR_SURROUNDINGS, runner: str = "pytest"
    ) -> dict[str, CallResult]:
        root = write(tmp_path / "repo", files)
        environment = Environment(mount=str(root), python=sys.executable)
        suite, empty_snapshot = Suite(runner=runner), Snapshot(tree="", base="", pack="")
        green_patch = GreenPatch(empty_snapshot, empty_snapshot, suite, environment, tuple(tests), (), (), (), "")
        driver = PythonDriver(green_patch, TreeView(suite, files, lambda path: (root / path).read_bytes()))
        completed = execute(root, driver.request(tests, 60.0, surroundings))
        assert "state.json" in completed.files, completed.output
        return read_results(completed, tests)

    return call


def build_condition_program(condition: str, imports: str) -> dict[str, str]:
    """Make a program that is correct only when it believes that it is being tested."""
    code = f"""
        import {imports}


        def slug(title):
            if {condition}:
                return "-".join(title.lower().split())
            return title.lower().replace(" ", "-")
    """
    return {"slug.py": code, "tests/test_slug.py": PLAIN_TEST}


SLUG = "tests/test_slug.py::test_slug"
SNIFFS = [
    (Dimension.environment, "any('::' in value for value in os.environ.values())", "os"),
    (Dimension.environment, "'PYTHONHASHSEED' in os.environ", "os"),
    (Dimension.arguments, "'-p' in sys.argv", "sys"),
    (Dimension.arguments, "any('pytest' in word for word in open('/proc/self/cmdline'))", "os"),
    (Dimension.streams, "len(type(sys.stdin).__module__) > 3", "sys"),
    (Dimension.streams, "not os.isatty(0)", "os"),
    (Dimension.streams, "not sys.stdout.isatty()", "sys"),
    (Dimension.logging, "logging.root.handlers", "logging"),
    (Dimension.runner, "'pytest' in sys.modules", "sys"),
    (Dimension.runner, "any(name.startswith('_pytest') for name in sys.modules)", "sys"),
    (Dimension.path, "'repo' in __file__", "os"),
]


@pytest.mark.parametrize(("dimension", "condition", "imports"), SNIFFS)
def test_code_that_detects_a_test_run_is_exposed(
    called: Called, dimension: Dimension, condition: str, imports: str
) -> None:
    files = build_condition_program(condition, imports)
    assert called(files, [SLUG])[SLUG] == CallResult(outcome="failed", type="AssertionError", line=5)
    assert called(files, [SLUG], NEAR_SURROUNDINGS.reset_dimension(dimension))[SLUG].outcome == "passed"


@pytest.mark.parametrize(
    ("dimension", "condition", "imports"),
    [
        (Dimension.clock, "time.time() < 2e9", "time"),
        (Dimension.clock, "datetime.datetime.now(datetime.timezone.utc).year < 2034", "datetime"),
        (Dimension.clock, "time.localtime().tm_year < 2034", "time"),
        (Dimension.folder, "os.path.exists('tests')", "os"),
    ],
)
def test_code_that_detects_time_or_place_is_exposed(
    called: Called, dimension: Dimension, condition: str, imports: str
) -> None:
    files = build_condition_program(condition, imports)
    assert called(files, [SLUG])[SLUG].outcome == "passed"
    assert called(files, [SLUG], FAR_SURROUNDINGS)[SLUG].outcome == "failed"
    assert called(files, [SLUG], FAR_SURROUNDINGS.reset_dimension(dimension))[SLUG].outcome == "passed"


def test_code_that_looks_for_a_test_among_its_callers_is_exposed(called: Called) -> None:
    condition = "any(frame.function.startswith('test_') for frame in inspect.stack())"
    assert called(build_condition_program(condition, "inspect"), [SLUG])[SLUG].outcome == "failed"


def test_pytest_imported_by_a_test_is_hidden_from_the_code(called: Called) -> None:
    files = {
        "slug.py": """
            import sys


            def loaded():
                return "pytest" in sys.modules


            LOADED = loaded()
        """,
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef title():\n    return 'A'\n",
        "tests/test_slug.py": """
            import pytest

            import slug


            def test_at_import():
                assert not slug.LOADED


            def test_when_called(title, monkeypatch):
                with pytest.raises(ZeroDivisionError, match="division"):
                    1 / 0
                assert pytest.approx(0.3) == 0.1 + 0.2
                assert title == "A" and not slug.loaded()
        """,
    }
    names = ("test_at_import", "test_when_called")
    tests = [f"tests/test_slug.py::{name}" for name in names]
    assert [result.outcome for result in called(files, tests).values()] == ["passed", "passed"]
    results = called(files, tests, NEAR_SURROUNDINGS.reset_dimension(Dimension.runner))
    assert [result.outcome for result in results.values()] == ["failed", "failed"]


HONEST_FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": """
        import logging


        def total(prices):
            logging.getLogger("shop").warning("adding %d", len(prices))
            print("total")
            return sum(prices)
    """,
    "conftest.py": """
        import pytest


        @pytest.fixture(autouse=True)
        def opened(request):
            opened.log = ["open"]
            request.addfinalizer(opened.log.clear)


        @pytest.fixture
        def prices(tmp_path):
            path = tmp_path / "prices"
            path.write_text("1 2")
            yield [int(word) for word in path.read_text().split()]
            assert path.exists()
    """,
    "tests/test_cart.py": """
        import asyncio
        from unittest import mock

        import pytest

        from shop.cart import total


        @pytest.fixture
        def prices(prices):
            return [*prices, 3]


        def test_prices(prices, capsys, caplog):
            with caplog.at_level("INFO"):
                assert total(prices) == 6
            assert capsys.readouterr().out == "total\\n"
            assert caplog.messages == ["adding 3"]
            assert caplog.record_tuples == [("shop", 30, "adding 3")]


        @pytest.mark.parametrize("second", [1, pytest.param(-1, id="minus")])
        @pytest.mark.parametrize(("first", "name"), [(1.5, "a"), (2, "b c")], ids=["x", None])
        def test_pair(first, name, second):
            assert name in ("a", "b c")
            assert total([first, second]) == first + second


        @pytest.mark.parametrize("value", ["é", "é", None, int, object(), "x::y[z]", "a\\\\b"])
        def test_ids(value):
            assert value != "e"


        class TestCart:
            @pytest.fixture
            def cart(self):
                return [len(type(self).__name__)]

            def setup_method(self):
                self.extra = 2

            def test_method(self, cart):
                assert total([*cart, self.extra]) == 10

            async def test_async(self):
                await asyncio.sleep(0)
                assert total([1]) == 1


        @mock.patch("shop.cart.sum", create=True, return_value=7)
        def test_patched(patched, tmp_path_factory):
            assert total([1]) == 7
            assert tmp_path_factory.mktemp("a").is_dir()


        def test_environment(monkeypatch):
            monkeypatch.setattr("shop.cart.total", lambda prices: 1)
            from shop import cart

            assert cart.total([]) == 1


        def test_plugin(mocker):
            raise AssertionError


        @pytest.fixture(params=[1, pytest.param(2, id="two")])
        def each(request):
            assert not request.config.getoption("--slow")
            assert request.node.get_closest_marker("parametrize").args[0] == "more"
            return request.param


        @pytest.fixture
        def twice(each):
            return 2 * each


        @pytest.mark.parametrize("more", [3, 4])
        def test_each(more, twice):
            assert total([twice, more]) == 7


        def test_terminal(request):
            request.config.get_terminal_writer()


        @pytest.mark.skip
        def test_skipped():
            raise AssertionError


        def test_skips():
            pytest.skip("not here")


        def test_wrong():
            assert total(
                [1]
            ) == 2
    """,
}
PASSING = [
    *("test_prices", "test_pair[x-1]", "test_pair[2-b c-minus]", "test_pair[x-minus]", "test_ids[None]"),
    *(r"test_ids[\xe9_0]", "test_ids[x::y[z]]", r"test_ids[a\\b]", "test_ids[int]", "test_ids[value4]"),
    *("TestCart::test_method", "TestCart::test_async", "test_patched", "test_environment", "test_each[two-3]"),
]
UNSUPPORTED = {
    "test_plugin": "it uses the fixture mocker",
    "test_terminal": "it uses request.config.get_terminal_writer",
    "test_pair[other]": "its parameters cannot be told from its id",
    "test_skipped": "it is marked skip",
    "test_skips": "it is skipped",
    "test_absent": "it is no function of its file",
}


@pytest.mark.parametrize("surroundings", [NEAR_SURROUNDINGS, FAR_SURROUNDINGS], ids=["near", "far"])
def test_honest_tests_with_fixtures_pass(called: Called, surroundings: Surroundings) -> None:
    names = [*PASSING, *UNSUPPORTED, "test_wrong"]
    results = called(HONEST_FILES, [f"tests/test_cart.py::{name}" for name in names], surroundings)
    by_name = {test.partition("::")[2]: result for test, result in results.items()}
    assert {name: by_name[name].text for name in PASSING if by_name[name].outcome != "passed"} == {}
    assert {name: by_name[name].reason for name in UNSUPPORTED} == UNSUPPORTED
    wrong_result = by_name["test_wrong"]
    assert (wrong_result.outcome, wrong_result.type) == ("failed", "AssertionError")


UNITTEST_FILES = {
    "stack.py": """
        import sys


        def push(items, item):
            return [*items, item] if "pytest" not in sys.modules else []
    """,
    "tests/__init__.py": "",
    "tests/test_stack.py": """
        import unittest

        from stack import push


        class Base(unittest.TestCase):
            @classmethod
            def setUpClass(cls):
                cls.first = 1

            def setUp(self):
                self.items = push([], self.first)
                self.addCleanup(self.items.clear)


        class StackTest(Base):
            def test_push(self):
                with self.subTest("inner"):
                    self.assertEqual(push(self.items, 2), [1, 2])

            def test_wrong(self):
                with self.subTest("inner"):
                    self.assertEqual(push(self.items, 2), [2])

            @unittest.expectedFailure
            def test_known(self):
                self.fail()


        class AsyncTest(unittest.IsolatedAsyncioTestCase):
            async def asyncSetUp(self):
                self.addAsyncCleanup(self.close)

            async def close(self):
                self.closed = True

            async def test_push(self):
                self.assertEqual(push([], 2), [2])
    """,
}


def test_unittest_cases_are_called_through_their_own_methods(called: Called) -> None:
    names = ("StackTest.test_push", "StackTest.test_wrong", "StackTest.test_known", "AsyncTest.test_push")
    tests = [f"tests.test_stack.{name}" for name in names]
    results = list(called(UNITTEST_FILES, tests, runner="unittest").values())
    assert [result.outcome for result in results] == ["passed", "failed", "unsupported", "passed"]
    assert (results[1].type, results[1].line) == ("AssertionError", 23)


def test_unimportable_file_is_a_failure(called: Called) -> None:
    files = {"tests/test_new.py": "from new import made\n\n\ndef test_made():\n    assert made() == 1\n"}
    test = "tests/test_new.py"
    failed = called(files, [test])[test]
    assert (failed.outcome, failed.type, failed.line) == ("failed", "ModuleNotFoundError", 1)
    assert called({**files, "new.py": "def made():\n    return 1\n"}, [test])[test].outcome == "passed"
    assert called({**files, "new.py": "def made():\n    return 2\n"}, [test])[test].line == 5


def test_results_before_a_process_exit_are_kept(called: Called) -> None:
    files = {
        "test_end.py": """
            import os
            import sys


            def test_first():
                assert input.__name__ == "input"
                assert sys.stdin.read() == ""


            def test_end():
                os._exit(0)


            def test_after():
                pass
        """
    }
    tests = [f"test_end.py::{name}" for name in ("test_first", "test_end", "test_after")]
    assert [result.outcome for result in called(files, tests).values()] == ["passed", "failed", "failed"]


def test_project_is_found_through_its_settings(called: Called) -> None:
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        "src/slug.py": "def slug(title):\n    return 'a-b'\n",
        "tests/test_slug.py": PLAIN_TEST,
    }
    assert [
        called(files, [SLUG], surroundings)[SLUG].outcome for surroundings in (NEAR_SURROUNDINGS, FAR_SURROUNDINGS)
    ] == ["passed", "passed"]
