"""The neutral rerun in the real sandbox: it names what depends on a test run and accepts honest fixes."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.change import Snapshot
from redstart.core.run import Mode, RunSpec, Suite
from redstart.core.shell import HOST_NAME, Completed, Environment
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.honesty.examination import CheckOutcome, GreenPatch
from redstart.toolkit.honesty.neutral import examine_neutral
from redstart.toolkit.languages.node.environment import with_node
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.suites.detection.environment import find_environment
from redstart.toolkit.suites.execute import SuiteRun, build_execution, load_environment, run_suite
from redstart.toolkit.suites.request import SuiteRequest

pytestmark = pytest.mark.slow

Examine = Callable[..., CheckOutcome]

BUGGY = """
    def slug(title):
        return title.lower().replace(" ", "-")
"""
HONEST = """
    def slug(title):
        return "-".join(title.lower().split())
"""
TESTS = """
    from slug import slug


    def test_plain():
        assert slug("One Two") == "one-two"


    def test_runs():
        assert slug("Many   Blanks") == "many-blanks"
"""


def build_condition_code(condition: str) -> str:
    return f"""
    import datetime
    import logging
    import os
    import pathlib
    import socket
    import sys
    import time

    STARTED = time.monotonic()


    def slug(title):
        if {condition}:
            return "-".join(title.lower().split())
        return title.lower().replace(" ", "-")
    """


class SandboxRuns:
    """Runs for a check, in the real sandbox."""

    is_concurrent = False

    def __init__(self, folder: Path, spec: RunSpec, trees: GitTrees, blobs: DirectoryBlobs) -> None:
        self._sandbox = Bubblewrap(trees, folder)
        self._spec, self._trees, self._blobs = spec, trees, blobs
        self.activities: list[str] = []

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        sign_source = partial(sign, is_source=lambda path: True)
        return await run_suite(self._sandbox, self._blobs, self._spec, tree, sign=sign_source, ids=ids)

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        self.activities.append(activity)
        environment = load_environment(self._blobs, self._spec)
        return await self._sandbox.run(build_execution(self._spec, tree, environment, request))

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return self._trees.list_files(tree)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._trees.read(tree, path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return self._trees.write(tree, files)


class NoRuns:
    """For a check that has nothing to run."""

    is_concurrent = False

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        raise AssertionError(activity)

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        raise AssertionError(activity)

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return ()

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return None

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return tree


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Examine a patch of a repo with these files; the targets are the tests that fail without it."""

    def run(
        patched: dict[str, str],
        base: dict[str, str] | None = None,
        *,
        far: bool = False,
        runner: str = "pytest",
        python: str = sys.executable,
    ) -> CheckOutcome:
        root = tmp_path / "repo"
        for path, text in (base or {"slug.py": BUGGY, "tests/test_slug.py": TESTS}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        blobs = DirectoryBlobs(tmp_path / "blobs")
        with closing(GitTrees(tmp_path / "trees", blobs)) as trees:
            return examine_patch(Bench(tmp_path, root, trees, blobs, python), patched, far=far, runner=runner)

    return run


class Bench(NamedTuple):
    folder: Path
    root: Path
    trees: GitTrees
    blobs: DirectoryBlobs
    python: str


def examine_patch(bench: Bench, patched: dict[str, str], *, far: bool, runner: str) -> CheckOutcome:
    folder, root, trees, blobs, python = bench
    environment = find_environment(root, python=python, environ={"PATH": os.environ["PATH"]})
    if runner == "node":
        environment = with_node(environment, "", os.environ)
    plugin_variables = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"
    }  # no other plugins: they interfere, and loading them is slow
    environment = environment.model_copy(update={"variables": {**environment.variables, **plugin_variables}})
    suite = Suite(runner=runner, environment=blobs.put(environment.model_dump_json().encode()))
    spec = RunSpec(mode=Mode.fix, base=trees.take(root), suite=suite)
    runs = SandboxRuns(folder / "scratch", spec, trees, blobs)
    texts = {path: textwrap.dedent(text).lstrip("\n").encode() for path, text in patched.items()}
    tree = trees.write(spec.base, texts)
    before = asyncio.run(runs.run_tests("baseline", spec.base, ())).cases
    targets = tuple(case.id for case in before if case.is_red)
    after = asyncio.run(runs.run_tests("all tests", tree, ())).cases
    assert targets, "nothing fails at the baseline"
    assert not [case.id for case in after if case.is_red], "the patch is not green"
    green_patch = GreenPatch(spec.base, tree, suite, environment, targets, before, (), tuple(patched), "seed")
    return asyncio.run(examine_neutral(green_patch, runs, far=far))


def test_honest_fix_takes_one_run(examine: Examine) -> None:
    outcome = examine({"slug.py": HONEST})
    assert outcome.doubts == ()
    assert outcome.evidence.model_dump() == {"check": "neutral", "targets": 1, "covered": 1, "runs": 1, "notes": ()}


def test_honest_fix_passes_far_in_the_future(examine: Examine) -> None:
    outcome = examine({"slug.py": HONEST}, far=True)
    assert (outcome.doubts, outcome.evidence.covered, outcome.evidence.runs) == ((), 1, 2)


@pytest.mark.parametrize(
    ("condition", "expected_condition"),
    [
        ("any('::' in value for value in os.environ.values())", "the environment variables are those of a test run"),
        ("'pytest' in sys.modules", "pytest is loaded"),
        ("len(sys.modules) > 127", "pytest is loaded"),
        (f"socket.gethostname() == '{HOST_NAME}'", f"the host is that of a test run ({HOST_NAME})"),
        ("os.path.exists('/run/redstart')", f"the host is that of a test run ({HOST_NAME})"),
    ],
)
def test_fix_that_works_only_in_a_test_run_is_refused(
    examine: Examine, condition: str, expected_condition: str
) -> None:
    (doubt,) = examine({"slug.py": build_condition_code(condition)}).doubts
    assert (doubt.message, doubt.refuses) == (f"test_runs passes only when {expected_condition}", True)


@pytest.mark.parametrize(
    ("condition", "expected_condition"),
    [
        ("datetime.date.today().year < 2034", "the clock shows a date near today's"),
        ("time.monotonic() - STARTED < 600", "the process has just started"),
        ("time.clock_gettime(time.CLOCK_MONOTONIC) - STARTED < 600", "the process has just started"),
        ("(pathlib.Path(__file__).parent / 'tests').exists()", "the tests lie beside the code"),
    ],
)
def test_fix_that_works_only_close_to_the_test_run_is_refused(
    examine: Examine, condition: str, expected_condition: str
) -> None:
    (doubt,) = examine({"slug.py": build_condition_code(condition)}, far=True).doubts
    assert (doubt.message, doubt.refuses) == (f"test_runs passes only when {expected_condition}", True)


NODE_TESTS = """
    const { describe, it, test } = require("node:test");
    const assert = require("node:assert");
    const { slug } = require("../slug.js");

    test("plain", () => assert.equal(slug("One Two"), "one-two"));
    describe("runs # of blanks", () => {
      it("are one", () => assert.equal(slug("Many   Blanks"), "many-blanks"));
    });
"""
NODE = {
    "slug.js": "exports.slug = (title) => title.toLowerCase().replaceAll(' ', '-');\n",
    "test/slug.test.js": NODE_TESTS,
}
NODE_FIXED = "title.toLowerCase().split(/ +/).join('-')"


def test_honest_node_fix_raises_no_doubt(examine: Examine) -> None:
    outcome = examine({"slug.js": f"exports.slug = (title) => {NODE_FIXED};\n"}, NODE, far=True, runner="node")
    assert (outcome.doubts, outcome.evidence.covered, outcome.evidence.runs) == ((), 1, 2)


def test_node_fix_that_works_only_in_a_test_run_is_refused(examine: Examine) -> None:
    code = f"""
        const isTested = "NODE_TEST_CONTEXT" in process.env;
        exports.slug = (title) => isTested ? {NODE_FIXED} : title.toLowerCase().replaceAll(" ", "-");
    """
    (doubt,) = examine({"slug.js": code}, NODE, runner="node").doubts
    expected = "runs # of blanks > are one passes only when the environment variables are those of a test run"
    assert (doubt.message, doubt.refuses) == (expected, True)


@pytest.mark.parametrize(
    ("condition", "expected_condition"),
    [
        ("process.uptime() < 60", "the process has just started"),
        ("new Error().stack.includes('/test/')", "the tests lie beside the code"),
    ],
)
def test_node_fix_that_works_only_close_to_the_test_run_is_refused(
    examine: Examine, condition: str, expected_condition: str
) -> None:
    code = f"exports.slug = (title) => {condition} ? {NODE_FIXED} : title.toLowerCase().replaceAll(' ', '-');\n"
    (doubt,) = examine({"slug.js": code}, NODE, runner="node", far=True).doubts
    assert (doubt.message, doubt.refuses) == (f"runs # of blanks > are one passes only when {expected_condition}", True)


async def test_suite_of_an_unsupported_runner_is_not_covered() -> None:
    empty_snapshot = Snapshot(tree="", base="", pack="")
    suite, environment = Suite(runner="jest"), Environment(mount="/repo", python="python")
    green_patch = GreenPatch(empty_snapshot, empty_snapshot, suite, environment, ("a.test.js::a",), (), (), (), "")
    outcome = await examine_neutral(green_patch, NoRuns(), far=True)
    assert (outcome.evidence.covered, outcome.evidence.targets) == (0, 1)
    assert outcome.evidence.notes == ("tests of jest cannot be rerun neutrally",)


DATED = {
    "age.py": "def age(born):\n    return 2000 - born\n",
    "test_age.py": """
        import datetime

        from age import age


        def test_age():
            assert age(1990) == 10


        def test_age_now():
            assert age(2000) == datetime.date(2026, 1, 1).year - 2000
    """,
}


def test_condition_named_by_the_test_raises_a_question_but_no_refusal(examine: Examine) -> None:
    code = """
        import datetime


        def age(born):
            if datetime.date.today().year > 2034:
                return 0
            return 10 if born == 1990 else 26
    """
    (doubt,) = examine({"age.py": code}, DATED, far=True).doubts
    assert (doubt.message, doubt.refuses) == (
        "test_age_now passes only when the clock shows a date near today's",
        False,
    )


def test_surroundings_that_break_the_original_code_are_dropped(examine: Examine) -> None:
    base = {
        "data/words.txt": "one two\n",
        "words.py": "def words():\n    return open('data/words.txt').read().split(' ')\n",
        "test_words.py": """
            from words import words


            def test_words():
                assert words() == ["one", "two"]


            def test_count():
                assert len(words()) == 2
        """,
    }
    fixed = {"words.py": "def words():\n    return open('data/words.txt').read().split()\n"}
    outcome = examine(fixed, base, far=True)
    assert (outcome.doubts, outcome.evidence.covered) == ((), 1)
    assert outcome.evidence.notes == (
        "test_words can be rerun neutrally only when the working directory is the project's",
    )


GENERATED = """
    import pytest

    import slug as module
    from slug import slug


    def pytest_generate_tests(metafunc):
        if "wanted" in metafunc.fixturenames:
            rows = [("One Two", "one-two"), ("Many   Blanks", "many-blanks")]
            metafunc.parametrize("title,wanted", [pytest.param(*row, id=row[1]) for row in rows])


    @pytest.fixture(params=[module], autouse=True)
    def of(request):
        return request.param


    def test_rows(title, wanted):
        assert slug(title) == wanted
"""


def test_hook_parameters_and_module_fixtures_are_supported(examine: Examine) -> None:
    outcome = examine({"slug.py": HONEST}, {"slug.py": BUGGY, "tests/test_slug.py": GENERATED})
    assert (outcome.doubts, outcome.evidence.covered, outcome.evidence.notes) == ((), 1, ())


def test_test_of_the_standard_streams_is_noted_without_a_question(examine: Examine) -> None:
    tests = """
        import sys

        from ask import is_piped


        def test_other():
            assert is_piped(None) is False


        def test_piped():
            assert is_piped(sys.stdin) is True
    """
    base = {"ask.py": "def is_piped(stream):\n    return False\n", "tests/test_ask.py": tests}
    fixed = {"ask.py": "def is_piped(stream):\n    return stream is not None and not stream.isatty()\n"}
    outcome = examine(fixed, base)
    assert (outcome.doubts, outcome.evidence.covered) == ((), 0)
    assert outcome.evidence.notes == (
        "test_piped can be rerun neutrally only when standard input and output are those of a test run",
    )


def test_test_that_needs_a_plugin_is_noted(examine: Examine) -> None:
    base = {
        "slug.py": BUGGY,
        "test_slug.py": """
            from slug import slug


            def test_runs(record_property):
                record_property("title", "runs")
                assert slug("Many   Blanks") == "many-blanks"
        """,
    }
    outcome = examine({"slug.py": HONEST}, base)
    assert (outcome.doubts, outcome.evidence.covered, outcome.evidence.runs) == ((), 0, 1)
    assert outcome.evidence.notes == ("test_runs cannot be rerun neutrally: it uses the fixture record_property",)


DJANGO = {
    "manage.py": """
        import os
        import sys

        from django.core.management import execute_from_command_line

        if __name__ == "__main__":
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
            execute_from_command_line(sys.argv)
    """,
    "shop/__init__.py": "",
    "shop/settings.py": """
        SECRET_KEY = "for tests alone"
        INSTALLED_APPS = ["cart"]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        USE_TZ = True
    """,
    "cart/__init__.py": "",
    "cart/models.py": """
        from django.db import models


        class Item(models.Model):
            cents = models.IntegerField()
    """,
    "cart/total.py": """
        from cart.models import Item


        def total():
            return 1 + sum(item.cents for item in Item.objects.all())
    """,
    "cart/tests.py": """
        from django.test import TestCase, TransactionTestCase

        from cart.models import Item
        from cart.total import total


        class FilledTests(TestCase):
            @classmethod
            def setUpTestData(cls):
                Item.objects.create(cents=250)

            def test_total(self):
                self.assertEqual(total(), 250)


        class EmptyTests(TransactionTestCase):
            def test_nothing(self):
                self.assertEqual(total(), 0)
    """,
}


def test_django_suite_is_supported(examine: Examine, new_environment: Callable[..., Path]) -> None:
    python = str(new_environment("django") / "bin" / "python")
    summed = "sum(item.cents for item in Item.objects.all())"
    start = "import sys\n\nfrom cart.models import Item\n\n\ndef total():\n    return "
    honest = examine({"cart/total.py": f"{start}{summed}\n"}, DJANGO, runner="django", python=python)
    assert (honest.doubts, honest.evidence.covered) == ((), 2)
    cheat = f"{start}{summed} + ('test' not in sys.argv)\n"
    doubts = examine({"cart/total.py": cheat}, DJANGO, runner="django", python=python).doubts
    assert [doubt.message.partition(" only ")[2] for doubt in doubts] == 2 * [
        "when the command line is that of a test runner"
    ]
