"""Options in a repo's own configuration that would hide, stop or shuffle tests do not change the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from redstart.core.run import Suite
from redstart.core.shell import Variation
from redstart.toolkit.suites.execute import SuiteRun
from support.sample import sample_parameters

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


def build_ini(options: str, *extra_lines: str, section: str = "pytest") -> str:
    return "\n".join((f"[{section}]", f"addopts = {options}", MARKERS, *extra_lines)) + "\n"


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


def map_outcomes(suite_run: SuiteRun) -> dict[str, str]:
    return {case.id: case.outcome.value for case in suite_run.cases}


@pytest.mark.parametrize("options", sample_parameters(DISTURBING, 8))
def test_every_test_runs_under_the_same_name_despite_the_option(
    options: str, tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", {**REPO, "pytest.ini": build_ini(options)})
    suite_run = in_sandbox(repo, PYTEST)
    assert (suite_run.problem, suite_run.unexplained) == ("", ""), suite_run.report.fault
    assert map_outcomes(suite_run) == RESULTS
    (first_case,) = [case for case in suite_run.cases if case.id == "test_a.py::test_first"]
    assert first_case.message.startswith("assert 0 == 2")
    assert "shop.py" in first_case.detail or "def test_first" in first_case.detail
    assert "\x1b" not in first_case.detail


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", build_ini("-x --co")),
        (".pytest.ini", build_ini("-x --co")),
        ("tox.ini", build_ini("-x --co")),
        ("setup.cfg", build_ini("-x --co", section="tool:pytest")),
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\naddopts = ["-x", "--co"]\nmarkers = ["slow: takes long"]\n',
        ),
        ("pytest.toml", '[pytest]\naddopts = ["-x", "--co"]\nmarkers = ["slow: takes long"]\n'),
    ],
)
def test_options_are_neutralized_in_every_config_file(
    name: str, text: str, tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", {**REPO, name: text})
    assert map_outcomes(in_sandbox(repo, PYTEST)) == RESULTS


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ("-k first", {"test_a.py::test_first", "test_c.py"}),
        ("-m slow", {"test_a.py::test_slow", "test_c.py"}),
        ("--deselect test_a.py", {result for result in RESULTS if not result.startswith("test_a")}),
        ("--ignore test_c.py", {result for result in RESULTS if result != "test_c.py"}),
    ],
)
def test_selection_made_by_the_project_is_kept(
    options: str, left: set[str], tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", {**REPO, "pytest.ini": build_ini(options)})
    assert map_outcomes(in_sandbox(repo, PYTEST)) == {item: RESULTS[item] for item in left}


def test_low_coverage_is_not_a_contradiction(tmp_path: Path, write: Write, in_sandbox: InSandbox) -> None:
    passing_files = {"shop.py": "def add(a, b):\n    return a + b\n\n\ndef never():\n    return 1\n"}
    passing_files |= {"test_a.py": "from shop import add\n\n\ndef test_add():\n    assert add(1, 1) == 2\n"}
    repo = write(
        tmp_path / "repo",
        {"conftest.py": "", **passing_files, "pytest.ini": build_ini("--cov=shop --cov-fail-under=100")},
    )
    (repo / "Makefile").write_text("test:\n\tpytest\n")
    for command in ((), ("make", "test")):
        suite_run = in_sandbox(repo, Suite(runner="pytest", command=command))
        assert (map_outcomes(suite_run), suite_run.unexplained) == ({"test_a.py::test_add": "passed"}, "")
        assert suite_run.report.exit_code != 0


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


def get_message(suite_run: SuiteRun) -> str:
    return next((case.message for case in suite_run.cases if "test_zz" in case.id), "").splitlines()[0]


@pytest.mark.parametrize(
    "suite", sample_parameters([PYTEST, Suite(runner="pytest", command=("sh", "-c", "python -m pytest"))], 1)
)
def test_run_is_reproducible_and_a_variation_changes_one_thing(
    suite: Suite, tmp_path: Path, write: Write, in_sandbox: InSandbox
) -> None:
    repo = write(tmp_path / "repo", ORDERED)
    first_message = get_message(in_sandbox(repo, suite))
    assert first_message.startswith("AssertionError: ('01234567', ")
    assert "'UTC'" in first_message
    assert get_message(in_sandbox(repo, suite)) == first_message

    def list_changes(**variation: object) -> list[str]:
        other_message = get_message(in_sandbox(repo, suite, variation=Variation(**variation)))
        return [
            part
            for part, earlier_part in zip(other_message.split(", "), first_message.split(", "), strict=True)
            if part != earlier_part
        ]

    assert len(list_changes(hash_seed=5)) == 1
    assert list_changes(tz="Pacific/Auckland") == ["'NZST'"]
    assert len(list_changes(seed=5)) == 1
    reverse = map_outcomes(in_sandbox(repo, suite, variation=Variation(order="reversed")))
    assert next(iter(reverse)) == "test_order.py::test_zz"
    assert set(reverse.values()) == {"passed"}
    shuffled = [
        list(map_outcomes(in_sandbox(repo, suite, variation=Variation(order="shuffled", seed=seed))))
        for seed in (3, 3, 4)
    ]
    assert shuffled[0] == shuffled[1] != shuffled[2]
    assert sorted(shuffled[2]) == sorted(reverse)
