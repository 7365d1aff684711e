"""Every caller agrees whether a path is a test, and another package can add a language."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.app.init import list_project_files
from redstart.core.report import Outcome
from redstart.core.shell import Completed, Environment, ExitCause
from redstart.core.suite import Suite
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.languages.registry import (
    find_file_language,
    find_runner_language,
    is_test_path,
    list_languages,
)
from redstart.toolkit.patching.policy import Protection, find_protection
from redstart.toolkit.retrieval.chunks import MARGIN_LINES
from redstart.toolkit.retrieval.rank import RankingQuestion, retrieve
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.detection.describe import describe_runner
from redstart.toolkit.suites.detection.suite_locations import SuitePlace, list_suites
from redstart.toolkit.suites.new_tests.command import include_tests

PATHS = {
    "test_cart.py": True,
    "pkg/cart_test.py": True,
    "pkg/tests.py": True,
    "Tests/Cart.py": True,
    "tests/data/orders.json": True,
    "tests/helpers/__init__.py": True,
    "conftest.py": True,
    "pkg/TEST_CART.PY": True,
    "pkg/test_cart.pyi": True,
    "features/cart.feature": True,
    "src/cart.spec.ts": True,
    "src/__tests__/cart.jsx": True,
    "src/__mocks__/fs.js": True,
    "src/__snapshots__/cart.txt": True,
    "cypress/support/commands.ts": True,
    "e2e/login.ts": True,
    "test-cart.mjs": True,
    "pkg/testdata/order.golden": True,
    "app/CartTest.java": True,
    "Shop.Tests/Cart.cs": True,
    "spec/cart_spec.rb": True,
    "src/latest.py": False,
    "src/contest.py": False,
    "testing/cart.py": False,
    "fixtures.py": False,
    "src/testimony/cart.py": False,
    "pytest_plugin.py": False,
    "attests/cart.js": False,
    "src/inspector.ts": False,
    "src/specification.js": False,
    "app/Latest.java": False,
    "src/specs/order.go": False,
    "README.md": False,
}


@pytest.mark.parametrize(("path", "expected"), PATHS.items())
def test_every_caller_agrees_whether_a_path_is_a_test(path: str, expected: bool) -> None:
    assert is_test_path(path) is expected
    # The one difference: a conftest.py outside of the test directories only configures the tests.
    assert (find_protection(path) is Protection.test) is (expected and path != "conftest.py")


def test_each_runner_and_suffix_belongs_to_one_language() -> None:
    runners = [name for language in list_languages() for name in language.runners]
    suffixes = [suffix for language in list_languages() for suffix in language.suffixes]
    assert len(set(runners)) == len(runners) > 0
    assert len(set(suffixes)) == len(suffixes) > 0


ADDED = """
    from redstart.core.report import Case, Outcome
    from redstart.toolkit.languages.protocol import Language, SuitePlace, ReadCases, SuiteRunner, list_unnamed_files
    from redstart.toolkit.retrieval.code_reader import CodeReader, LineRange
    from redstart.toolkit.suites.request import SuiteRequest

    class LuaReader(CodeReader):
        def __init__(self, sources):
            self.sources = sources

        def list_line_ranges(self, path):
            lines = list(enumerate(self.sources.read_lines(path), 1))
            starts = [number for number, line in lines if line.startswith("function")]
            ends = [number for number, line in lines if line == "end"]
            return [LineRange(*pair) for pair in zip(starts, ends)]

    class Busted(SuiteRunner):
        def build_request(self, suite, environment, *, ids, sentinel, variation, test_cpu):
            return SuiteRequest(suite.command or ("busted",), {"IDS": ",".join(ids)}, {}, ("report.txt",))

        def read(self, suite, completed):
            lines = completed.files.get("report.txt", "").splitlines()
            cases = [Case(id=line[1:], outcome=Outcome.passed if line[0] == "+" else Outcome.failed) for line in lines]
            return ReadCases(cases or None, bool(lines))

        def list_added_arguments(self, suite, files):
            return list_unnamed_files(suite.command[1:], files)

        def describe(self, suite):
            return "Busted"

    class Lua(Language):
        name, suffixes, runners = "Lua", (".lua",), ("busted",)
        runner = Busted()

        def create_code_reader(self, sources):
            return LuaReader(sources)

        def is_test_path(self, path):
            return path.endswith("_spec.lua")

        def find_suites(self, paths, read):
            return (SuitePlace("", "busted"),) if any(map(self.is_test_path, paths)) else ()
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add a package with its own language, as pip would install it."""
    (tmp_path / "redstart_lua.py").write_text(textwrap.dedent(ADDED))
    metadata_folder = tmp_path / "redstart_lua-1.0.dist-info"
    metadata_folder.mkdir()
    (metadata_folder / "METADATA").write_text("Metadata-Version: 2.1\nName: redstart-lua\nVersion: 1.0\n")
    (metadata_folder / "entry_points.txt").write_text("[redstart.languages]\nlua = redstart_lua:Lua\n")
    monkeypatch.syspath_prepend(tmp_path)
    list_languages.cache_clear()
    yield
    list_languages.cache_clear()


@pytest.mark.usefixtures("installed")
def test_an_installed_package_adds_a_language_with_its_runner(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "spec").mkdir(parents=True)
    (project / "cart.lua").write_text("return {}\n")
    (project / "spec" / "cart_spec.lua").write_text("describe('cart', function() end)\n")
    paths = list(list_project_files(project))
    assert list_suites(paths, lambda path: (project / path).read_bytes()) == (SuitePlace("", "busted"),)
    language = find_file_language("cart.lua")
    assert language is not None
    assert (language.name, language is find_runner_language("busted")) == ("Lua", True)
    assert [path for path in sorted(paths) if is_test_path(path)] == ["spec/cart_spec.lua"]
    assert find_protection("cart_spec.lua") is Protection.test

    suite = Suite(runner="busted", command=("busted", "a_spec.lua"))
    request = runner.request(suite, Environment(mount="/nowhere", python="python3"), ["cart adds"])
    assert (request.argv, request.variables["IDS"]) == (("busted", "a_spec.lua"), "cart adds")
    assert include_tests(suite, ["b_spec.lua"]) == ("busted", "a_spec.lua", "b_spec.lua")
    assert (describe_runner(suite), runner.can_select_tests(suite)) == ("Busted", True)
    files = {"report.txt": "+cart adds\n-cart removes\n"}
    parsed = runner.read(suite, Completed(exit_code=1, cause=ExitCause.failed, output="", files=files))
    assert [(case.id, case.outcome) for case in parsed.cases] == [
        ("cart adds", Outcome.passed),
        ("cart removes", Outcome.failed),
    ]
    silent_run = Completed(exit_code=127, cause=ExitCause.failed, output="sh: busted: not found")
    assert "busted is not installed where the tests run." in runner.read(suite, silent_run).fault


LUA = "".join(
    f"function {name}(order)\n  local x = order\n  local y = x\n  return y\nend\n\n"
    for name in (*(f"step_{number}" for number in range(60)), "total_price", "last")
)


def list_shown_ranges() -> list[tuple[int, int]]:
    """List the line ranges that retrieval shows for `total_price`, whose six lines begin at 361."""
    tree = {"cart.lua": LUA.encode()}
    question = RankingQuestion([], "total_price is wrong", [], is_test_path, budget=1000)
    context = retrieve(question, list(tree), tree.get, walk_search(list(tree), tree.get))
    return [(chunk.start, chunk.end) for chunk in context.chunks]


@pytest.mark.usefixtures("installed")
def test_an_added_language_cuts_its_files_into_functions() -> None:
    assert list_shown_ranges() == [(361 - MARGIN_LINES, 365 + MARGIN_LINES)]


def test_files_of_an_uninstalled_language_are_not_read() -> None:
    assert list_shown_ranges() == []


def test_runner_of_an_uninstalled_language_is_unknown() -> None:
    assert find_runner_language("busted") is None
