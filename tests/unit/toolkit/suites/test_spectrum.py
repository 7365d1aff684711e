"""Real runs of pytest that record which lines the red tests run, by tracing or by `sys.monitoring`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, ExitCause
from redstart.core.spectrum import Spectrum
from redstart.toolkit.languages.python.spectrum import QUESTION_FILE
from redstart.toolkit.suites.spectrum import ANSWER, SECONDS, build_spectrum_request, read_spectrum, watch

Execute = Callable[[Path, Any], Completed]
Write = Callable[[Path, Mapping[str, str]], Path]

SUITE = Suite(runner="pytest")
REPO = {
    "shop/__init__.py": "",
    "shop/rules.py": """
        def price(kind):
            if kind == "book":
                return book()
            return other()


        def book():
            return 3


        def other():
            return 5
        """,
    "shop/thread.py": """
        import threading


        def work(found):
            found.append(1)


        def later():
            found = []
            thread = threading.Thread(target=work, args=(found,))
            thread.start()
            thread.join()
            return found
        """,
    "tests/test_rules.py": """
        import pytest

        from shop.rules import price
        from shop.thread import later


        @pytest.mark.parametrize(("kind", "cost"), [("pen", 5), ("book", 4), ("ink", 5), ("cup", 5)])
        def test_price(kind, cost):
            assert price(kind) == cost


        def test_later():
            assert later() == [2]


        @pytest.mark.skip
        def test_skipped():
            price("book")


        def test_lacks_a_database():
            price("book")
            raise OSError
        """,
}
RED = "tests/test_rules.py::test_price[book-4]"
LATER = "tests/test_rules.py::test_later"
OTHER = "tests/test_rules.py::test_lacks_a_database"
GREEN = [f"tests/test_rules.py::test_price[{item}-5]" for item in ("pen", "ink", "cup")]


NEWER = [
    *filter(None, [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(12, 20))]),
    *map(str, sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin/python"))),
]


def _is_newer(python: str) -> bool:
    """Whether it starts (a program that pyenv puts on PATH may not) and has `sys.monitoring`."""
    return subprocess.run([python, "-c", "import sys; sys.monitoring"], capture_output=True).returncode == 0


def create_cases(
    failing_ids: Sequence[str] = (RED, LATER, OTHER), passing_ids: Sequence[str] = GREEN, seconds: float = 0.01
) -> list[Case]:
    failed = [Case(id=item, outcome=Outcome.failed, seconds=seconds) for item in failing_ids]
    return [*failed, *(Case(id=item, outcome=Outcome.passed, seconds=seconds) for item in passing_ids)]


@pytest.fixture(scope="module")
def newer(new_environment: Callable[..., Path]) -> str:
    """An interpreter with `sys.monitoring`, and pytest."""
    base = next(filter(_is_newer, NEWER), None)
    if base is None:
        pytest.skip("there is no Python 3.12 or later on this machine")
    return str(new_environment(f"pytest=={version('pytest')}", python=base) / "bin" / "python")


@pytest.fixture(params=["traced", "monitored"])
def python(request: pytest.FixtureRequest) -> str:
    if request.param == "monitored":
        return request.getfixturevalue("newer")
    if sys.version_info >= (3, 12):
        pytest.skip("this Python has sys.monitoring")
    return sys.executable


def record_spectrum(
    root: Path, python: str, execute: Execute, failing_ids: Sequence[str], **overrides: int
) -> Spectrum:
    """Record the spectrum of a run, with another time or number of lines than usual."""
    request = build_spectrum_request(SUITE, Environment(mount=str(root), python=python), failing_ids, create_cases())
    assert request is not None
    question = json.dumps(json.loads(request.files_in[QUESTION_FILE]) | overrides)
    completed = execute(root, request._replace(files_in={**request.files_in, QUESTION_FILE: question}))
    spectrum = read_spectrum(completed)
    assert spectrum is not None, completed.output
    return spectrum


@pytest.mark.slow
def test_lines_are_counted_by_failing_and_passing_tests(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    spectrum = record_spectrum(write(tmp_path, REPO), python, execute, [RED])
    assert (spectrum.red, spectrum.green) == (1, 3)
    rules = {line: (red_count, green_count) for line, red_count, green_count in spectrum.files["shop/rules.py"]}
    assert rules == {2: (1, 3), 3: (1, 0), 8: (1, 0)}
    assert "shop/thread.py" not in spectrum.files
    assert set(spectrum.files) == {"shop/rules.py", "tests/test_rules.py"}


@pytest.mark.slow
def test_lines_run_by_a_thread_are_recorded(tmp_path: Path, write: Write, execute: Execute, python: str) -> None:
    spectrum = record_spectrum(write(tmp_path, REPO), python, execute, [RED, LATER])
    assert spectrum.red == 2
    assert {line for line, _, _ in spectrum.files["shop/thread.py"]} >= {5, 9, 10, 11}


@pytest.mark.slow
def test_test_counts_only_if_its_outcome_is_unchanged(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    """A target that passes while lines are recorded is not red, and a failing test that is no target is not green."""
    spectrum = record_spectrum(write(tmp_path, REPO), python, execute, [RED, GREEN[0]])
    assert (spectrum.red, spectrum.green) == (1, 2)


@pytest.mark.slow
def test_files_outside_the_suite_directory_have_relative_names(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    write(tmp_path / "web", REPO | {"tests/test_rules.py": "import sys\n\nsys.path.append('../lib')\nimport far\n\n"})
    with (tmp_path / "web/tests/test_rules.py").open("a") as file:
        file.write("def test_far():\n    assert far.away() == 2\n")
    write(tmp_path, {"lib/far.py": "def away():\n    return 1\n"})
    failing_id = "tests/test_rules.py::test_far"
    environment = Environment(mount=str(tmp_path), python=python)
    request = build_spectrum_request(SUITE, environment, [failing_id], create_cases([failing_id], []))
    assert request is not None
    spectrum = read_spectrum(execute(tmp_path / "web", request))
    assert spectrum is not None
    assert spectrum.files["../lib/far.py"] == ((2, 1, 0),)


@pytest.mark.slow
def test_time_limit_keeps_recorded_lines_and_failing_tests_run_first(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    spectrum = record_spectrum(write(tmp_path, REPO), python, execute, [RED], seconds=0)
    assert (spectrum.red, spectrum.green) == (1, 0)


@pytest.mark.slow
def test_only_the_most_suspicious_of_many_lines_are_reported(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    spectrum = record_spectrum(write(tmp_path, REPO), python, execute, [RED], lines=2)
    assert spectrum.files == {"shop/rules.py": ((3, 1, 0), (8, 1, 0))}


@pytest.mark.parametrize(
    ("suite", "failing_ids", "known_cases"),
    [
        (Suite(runner="unittest"), [RED], create_cases()),
        (Suite(runner="pytest", junit="report.xml", command=("make",)), [RED], create_cases()),
        (SUITE, [RED], create_cases(seconds=SECONDS + 1)),
        (SUITE, ["tests/test_gone.py::test_gone"], create_cases()),
    ],
)
def test_nothing_runs_if_recording_is_impossible(suite: Suite, failing_ids: list[str], known_cases: list[Case]) -> None:
    assert (
        build_spectrum_request(suite, Environment(mount="/nowhere", python="python"), failing_ids, known_cases) is None
    )


@pytest.mark.parametrize(
    "text", ["", "{", '{"red": -1, "green": 1, "files": {}}', '{"red": 1, "green": 1, "files": 3}']
)
def test_invalid_spectrum_yields_none(text: str) -> None:
    completed = Completed(exit_code=0, cause=ExitCause.ok, output="", files={ANSWER: text})
    assert read_spectrum(completed) is None


def test_suspicion_follows_the_ochiai_formula() -> None:
    suspicion = Spectrum(red=4, green=9, files={"a.py": ((1, 4, 0), (2, 2, 2), (3, 1, 8))}).compute_suspicion()
    assert suspicion == {"a.py": {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 6)}}


@pytest.mark.slow
def test_spectrum_is_recorded_in_the_sandbox_with_xdist_and_coverage(
    tmp_path: Path, write: Write, prepared: Callable[..., Any]
) -> None:
    """Record as a step does, with xdist and coverage in the project's own options."""
    root = write(tmp_path / "repo", REPO | {"pytest.ini": "[pytest]\naddopts = -n 2 --cov=shop --cov-fail-under=99\n"})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    spectrum = asyncio.run(watch(*prepared(root, SUITE), [RED], create_cases()))
    assert spectrum is not None
    assert (spectrum.red, spectrum.green) == (1, 3)
    assert [line for line, _, green_count in spectrum.files["shop/rules.py"] if not green_count] == [3, 8]
