"""The driver that calls tests without a runner, in surroundings that do not look like a test run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.toolkit.honesty.neutral_surroundings import (
    NEAR,
    PLAUSIBLE,
    Call,
    CallResult,
    Dimension,
    Surroundings,
    neutral_request,
    read_results,
)
from redstart.toolkit.suites.request import Request

Execute = Callable[[Path, Request], Completed]
Called = Callable[..., dict[str, CallResult]]

PLAIN_TEST = """
    from slug import slug


    def test_slug():
        assert slug("A  B") == "a-b"
"""


@pytest.fixture
def called(tmp_path: Path, execute: Execute, write: Callable[..., Path]) -> Called:
    """Calls tests of a tree with these files and gives what became of each."""

    def call(
        files: dict[str, str], tests: list[str], surroundings: Surroundings = NEAR, runner: str = "pytest"
    ) -> dict[str, CallResult]:
        root = write(tmp_path / "repo", files)
        environment = Environment(mount=str(root), python=sys.executable)
        asked = Call(Suite(runner=runner), environment, tests, PLAUSIBLE, 60.0)
        completed = execute(root, neutral_request(asked, surroundings))
        assert "state.json" in completed.files, completed.output
        return read_results(completed, tests)

    return call


def sniffing(condition: str, imports: str) -> dict[str, str]:
    """A program that does right only where it takes itself to be tested."""
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
def test_code_that_asks_whether_it_is_tested(
    called: Called, dimension: Dimension, condition: str, imports: str
) -> None:
    files = sniffing(condition, imports)
    assert called(files, [SLUG])[SLUG] == CallResult(outcome="failed", type="AssertionError", line=5)
    assert called(files, [SLUG], NEAR.without(dimension))[SLUG].outcome == "passed"
