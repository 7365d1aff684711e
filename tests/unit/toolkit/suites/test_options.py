"""Options in a repo's own configuration that would hide, stop or shuffle tests do not change the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from redstart.core.run import Suite
from redstart.core.shell import Variation
from redstart.toolkit.suites.execute import SuiteRun
from support.sample import short_form

pytestmark = pytest.mark.slow

Write = Callable[[Path, Mapping[str, str]], Path]
InSandbox = Callable[..., SuiteRun]

PYTEST = Suite(runner="pytest")
REPO = {
    "conftest.py": "",
    "shop.py": "def add(a, b):\n    return a - b\n\n\ndef never():\n    return 1\n",
    "test_a.py": """
        import pytest

        from shop import add


        def test_first():
            assert add(1, 1) == 2


        def test_passes():
            assert add(1, 0) == 1


        @pytest.mark.slow
        def test_slow():
            assert add(2, 2) == 4
        """,
    "test_b.py": """
        import unittest


        class TestB(unittest.TestCase):
            def test_red(self):
                self.assertEqual([1, 2], [1, 3])

            def test_green(self):
                pass

            @unittest.skip("not now")
            def test_skipped(self):
                pass
        """,
    "test_c.py": "import no_such_module\n\n\ndef test_never():\n    pass\n",
}
RESULTS = {
    "test_a.py::test_first": "failed",
    "test_a.py::test_passes": "passed",
    "test_a.py::test_slow": "failed",
    "test_b.py::TestB::test_green": "passed",
    "test_b.py::TestB::test_red": "failed",
    "test_b.py::TestB::test_skipped": "skipped",
    "test_c.py": "error",
}
MARKERS = "markers = slow: takes long"


def ini(options: str, *more: str, section: str = "pytest") -> str:
    return "\n".join((f"[{section}]", f"addopts = {options}", MARKERS, *more)) + "\n"


DISTURBING = (
    "-x",
    "--exitfirst",
    "--maxfail=1",
    "-n auto",
    "-n 2 --maxfail=1 --dist loadscope",
    "-q",
    "-qq",
    "-vv",
    "--lf",
    "--ff",
    "--nf",
    "--sw",
    "--sw-skip",
    "--co",
    "--pdb",
    "-p no:junitxml",
    "-p no:terminal",
    "-p no:cacheprovider",
    "-p no:randomly",
    "--junitxml=own.xml --junit-prefix=ours",
    "-o junit_family=legacy",
    "-o junit_logging=all",
    "-o console_output_style=count",
    "--no-header --no-summary",
    "--tb=no",
    "--color=yes",
    "--randomly-seed=77",
    "--random-order",
    "--random-order-bucket=global",
    "--cov=shop --cov-fail-under=100 --cov-report=",
    "--strict-config --strict-markers",
    "--import-mode=importlib",
    "--durations=3 -rA -s",
)


def by_id(done: SuiteRun) -> dict[str, str]:
    return {case.id: case.outcome.value for case in done.cases}


@pytest.mark.parametrize("options", short_form(DISTURBING, 8))
def test_every_test_is_run_and_named_as_without_the_option(
    options: str, tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", {**REPO, "pytest.ini": ini(options)})
    done = in_sandbox(repo, PYTEST)
    assert (done.trouble, done.unexplained) == ("", ""), done.report.fault
    assert by_id(done) == RESULTS
    (first,) = [case for case in done.cases if case.id == "test_a.py::test_first"]
    assert first.message.startswith("assert 0 == 2")
    assert "shop.py" in first.detail or "def test_first" in first.detail
    assert "\x1b" not in first.detail


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", ini("-x --co")),
        (".pytest.ini", ini("-x --co")),
        ("tox.ini", ini("-x --co")),
        ("setup.cfg", ini("-x --co", section="tool:pytest")),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\naddopts = ["-x", "--co"]\nmarkers = ["slow: takes long"]\n',
        ),
        ("pytest.toml", '[pytest]\naddopts = ["-x", "--co"]\nmarkers = ["slow: takes long"]\n'),
    ],
)
def test_wherever_the_options_are_written(
    name: str, text: str, tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", {**REPO, name: text})
    assert by_id(in_sandbox(repo, PYTEST)) == RESULTS


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("-k first", {"test_a.py::test_first", "test_c.py"}),
        ("-m slow", {"test_a.py::test_slow", "test_c.py"}),
        ("--deselect test_a.py", {result for result in RESULTS if not result.startswith("test_a")}),
        ("--ignore test_c.py", {result for result in RESULTS if result != "test_c.py"}),
    ],
)
def test_what_the_project_chooses_stays_its_choice(
    options: str, left: set[str], tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", {**REPO, "pytest.ini": ini(options)})
    assert by_id(in_sandbox(repo, PYTEST)) == {item: RESULTS[item] for item in left}


def test_a_coverage_that_is_too_low_is_no_contradiction(tmp_path: Path, write: Write, in_sandbox: InSandbox) -> None:
    green = {"shop.py": "def add(a, b):\n    return a + b\n\n\ndef never():\n    return 1\n"}
    green |= {"test_a.py": "from shop import add\n\n\ndef test_add():\n    assert add(1, 1) == 2\n"}
    repo = write(tmp_path / "repo", {"conftest.py": "", **green, "pytest.ini": ini("--cov=shop --cov-fail-under=100")})
    (repo / "Makefile").write_text("test:\n\tpytest\n")
    for command in ((), ("make", "test")):
        done = in_sandbox(repo, Suite(runner="pytest", command=command))
        assert (by_id(done), done.unexplained) == ({"test_a.py::test_add": "passed"}, "")
        assert done.report.exit_code != 0


ORDERED = {
    "test_order.py": """
        import os
        import random
        import time

        import pytest


        @pytest.mark.parametrize("number", range(8))
        def test_order(number):
            with open(os.environ["TMPDIR"] + "/order", "a") as file:
                file.write(str(number))


        def test_zz():
            path = os.environ["TMPDIR"] + "/order"
            seen = open(path).read() if os.path.exists(path) else ""
            assert not seen, (seen, hash("a"), time.tzname[0], random.random())
        """,
}


def told(done: SuiteRun) -> str:
    return next((case.message for case in done.cases if "test_zz" in case.id), "").splitlines()[0]


@pytest.mark.parametrize(
    "suite", short_form([PYTEST, Suite(runner="pytest", command=("sh", "-c", "python -m pytest"))], 1)
)
def test_a_run_is_pinned_and_a_repeat_changes_one_thing(
    suite: Suite, tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", ORDERED)
    first = told(in_sandbox(repo, suite))
    assert first.startswith("AssertionError: ('01234567', ")
    assert "'UTC'" in first
    assert told(in_sandbox(repo, suite)) == first

    def varied(**what: object) -> list[str]:
        other = told(in_sandbox(repo, suite, vary=Variation(**what)))
        return [part for part, was in zip(other.split(", "), first.split(", "), strict=True) if part != was]

    assert len(varied(hash_seed=5)) == 1
    assert varied(tz="Pacific/Auckland") == ["'NZST'"]
    assert len(varied(seed=5)) == 1
    reverse = by_id(in_sandbox(repo, suite, vary=Variation(order="reversed")))
    assert next(iter(reverse)) == "test_order.py::test_zz"
    assert set(reverse.values()) == {"passed"}
    shuffled = [list(by_id(in_sandbox(repo, suite, vary=Variation(order="shuffled", seed=seed)))) for seed in (3, 3, 4)]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert sorted(shuffled[2]) == sorted(reverse)
