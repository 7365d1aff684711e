"""Descriptions of the runner and the interpreter for users."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.core.shell import Environment
from redstart.toolkit.suites.detection.describe import describe_interpreter, describe_runner


@pytest.mark.parametrize(
    ("runner", "choice", "expected"),
    [
        ("node", "node 20.20.2", ("node:test", "node 20.20.2")),
        ("jest", "node 20.20.2", ("jest", "node 20.20.2")),
        ("pytest", ".venv in the project", ("pytest", "python3 (.venv in the project)")),
        ("django", "VIRTUAL_ENV", ("Django tests", "python3 (VIRTUAL_ENV)")),
        ("unittest", "", ("unittest", "python3")),
    ],
)
def test_runner_and_interpreter_are_described_correctly(runner: str, choice: str, expected: tuple[str, str]) -> None:
    suite, environment = Suite(runner=runner), Environment(mount="/r", python="/r/.venv/bin/python3", chosen=choice)
    assert (describe_runner(suite), describe_interpreter(suite, environment)) == expected
