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
from redstart.toolkit.languages.python.spectrum import ASKED
from redstart.toolkit.suites.spectrum import ANSWER, SECONDS, read_spectrum, watch, watching

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


def cases(red: Sequence[str] = (RED, LATER, OTHER), green: Sequence[str] = GREEN, seconds: float = 0.01) -> list[Case]:
    failed = [Case(id=item, outcome=Outcome.failed, seconds=seconds) for item in red]
    return [*failed, *(Case(id=item, outcome=Outcome.passed, seconds=seconds) for item in green)]


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


def seen(root: Path, python: str, execute: Execute, red: Sequence[str], **otherwise: int) -> Spectrum:
    """Record the spectrum of a run, with another time or number of lines than usual."""
    request = watching(SUITE, Environment(mount=str(root), python=python), red, cases())
    assert request is not None
    asked = json.dumps(json.loads(request.files_in[ASKED]) | otherwise)
    done = execute(root, request._replace(files_in={**request.files_in, ASKED: asked}))
    found = read_spectrum(done)
    assert found is not None, done.output
    return found


@pytest.mark.slow
def test_lines_are_told_with_how_many_tests_of_each_colour_run_them(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    found = seen(write(tmp_path, REPO), python, execute, [RED])
    assert (found.red, found.green) == (1, 3)
    rules = {line: (red, green) for line, red, green in found.files["shop/rules.py"]}
    assert rules == {2: (1, 3), 3: (1, 0), 8: (1, 0)}
    assert "shop/thread.py" not in found.files
    assert set(found.files) == {"shop/rules.py", "tests/test_rules.py"}


@pytest.mark.slow
def test_what_a_thread_runs_is_seen(tmp_path: Path, write: Write, execute: Execute, python: str) -> None:
    found = seen(write(tmp_path, REPO), python, execute, [RED, LATER])
    assert found.red == 2
    assert {line for line, _, _ in found.files["shop/thread.py"]} >= {5, 9, 10, 11}


@pytest.mark.slow
def test_a_test_is_counted_only_in_the_colour_that_it_had(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    """A target that passes while lines are recorded is not red, and a failing test that is no target is not green."""
    found = seen(write(tmp_path, REPO), python, execute, [RED, GREEN[0]])
    assert (found.red, found.green) == (1, 2)


@pytest.mark.slow
def test_files_of_other_folders_are_named_from_where_the_tests_run(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    write(tmp_path / "web", REPO | {"tests/test_rules.py": "import sys\n\nsys.path.append('../lib')\nimport far\n\n"})
    with (tmp_path / "web/tests/test_rules.py").open("a") as file:
        file.write("def test_far():\n    assert far.away() == 2\n")
    write(tmp_path, {"lib/far.py": "def away():\n    return 1\n"})
    red = "tests/test_rules.py::test_far"
    environment = Environment(mount=str(tmp_path), python=python)
    asked = watching(SUITE, environment, [red], cases([red], []))
    assert asked is not None
    found = read_spectrum(execute(tmp_path / "web", asked))
    assert found is not None
    assert found.files["../lib/far.py"] == ((2, 1, 0),)


@pytest.mark.slow
def test_when_the_time_is_up_what_was_seen_counts_and_red_comes_first(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    found = seen(write(tmp_path, REPO), python, execute, [RED], seconds=0)
    assert (found.red, found.green) == (1, 0)


@pytest.mark.slow
def test_of_many_lines_the_most_suspicious_are_told(
    tmp_path: Path, write: Write, execute: Execute, python: str
) -> None:
    found = seen(write(tmp_path, REPO), python, execute, [RED], lines=2)
    assert found.files == {"shop/rules.py": ((3, 1, 0), (8, 1, 0))}


@pytest.mark.parametrize(
    ("suite", "red", "there"),
    [
        (Suite(runner="unittest"), [RED], cases()),
        (Suite(runner="pytest", junit="report.xml", command=("make",)), [RED], cases()),
        (SUITE, [RED], cases(seconds=SECONDS + 1)),
        (SUITE, ["tests/test_gone.py::test_gone"], cases()),
    ],
)
def test_where_nobody_can_watch_nothing_is_run(suite: Suite, red: list[str], there: list[Case]) -> None:
    assert watching(suite, Environment(mount="/nowhere", python="python"), red, there) is None


@pytest.mark.parametrize("text", ["", "{", '{"red": 0, "green": 1, "files": {}}', '{"red": 1, "green": 1, "files": 3}'])
def test_an_answer_that_is_none_is_no_answer(text: str) -> None:
    done = Completed(exit_code=0, cause=ExitCause.ok, output="", files={ANSWER: text})
    assert read_spectrum(done) is None


def test_suspicion_is_that_of_ochiai() -> None:
    found = Spectrum(red=4, green=9, files={"a.py": ((1, 4, 0), (2, 2, 2), (3, 1, 8))}).suspicion()
    assert found == {"a.py": {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 6)}}


@pytest.mark.slow
def test_it_is_seen_in_the_sandbox_whatever_else_takes_part(
    tmp_path: Path, write: Write, prepared: Callable[..., Any]
) -> None:
    """Record as a step does, with xdist and coverage in the project's own options."""
    root = write(tmp_path / "repo", REPO | {"pytest.ini": "[pytest]\naddopts = -n 2 --cov=shop --cov-fail-under=99\n"})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    found = asyncio.run(watch(*prepared(root, SUITE), [RED], cases()))
    assert found is not None
    assert (found.red, found.green) == (1, 3)
    assert [line for line, _, green in found.files["shop/rules.py"] if not green] == [3, 8]
