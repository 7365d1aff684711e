"""Suites that start pytest by `make`, `nox` or `tox`, run in the real sandbox: the results equal pytest alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from redstart.core.run import Suite
from redstart.core.shell import Environment
from redstart.toolkit.suites.detection.command import adapt_command
from redstart.toolkit.suites.execute import SuiteRun
from support.sample import sample_parameters

Write = Callable[[Path, Mapping[str, str]], Path]
InSandbox = Callable[..., SuiteRun]

TESTS = {
    "conftest.py": "",
    "shop/__init__.py": "def add(a, b):\n    return a - b\n",
    "tests/test_add.py": """
        import os
        import subprocess
        import sys

        import pytest

        from shop import add


        @pytest.mark.parametrize("a", [0, 1])
        def test_add(a):
            assert add(a, a) == 2 * a


        def test_zero():
            assert add(3, 0) == 3


        def test_variables_are_the_users():
            assert not [name for name in os.environ if name.startswith("REDSTART")]
            assert "redstart" not in os.environ.get("PYTEST_ADDOPTS", "") + os.environ.get("PYTHONPATH", "")
            assert "redstart" not in str(sys.path)


        def test_a_pytest_of_its_own(tmp_path):
            (tmp_path / "test_inner.py").write_text("def test_inner():\\n    assert 0\\n")
            done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, capture_output=True, text=True)
            assert "1 failed" in done.stdout
        """,
    "checks/test_more.py": """
        import sys

        from shop import add


        def test_more():
            assert add(1, 2) == 3


        def test_interpreter():
            assert sys.prefix != sys.base_prefix
        """,
}
NOX = """
    import nox


    @nox.session(python=["3.8", "3.11"])
    def tests(session):
        session.install("-e", ".", "pytest")
        session.run_install("uv", "sync", external=True)
        session.run("pytest", "tests", *session.posargs, success_codes=[0, 1])
        session.run("python", "-m", "pytest", "checks")


    @nox.session
    def lint(session):
        session.install("no-such-linter")
        session.run("no-such-linter")
    """
TOX = """
    [tox]
    requires = no-such-plugin
    envlist = py311, lint

    [testenv]
    deps = pytest
        no-such-package
    ignore_errors = true
    commands =
        pytest tests {posargs}
        python -m pytest checks

    [testenv:own]
    deps = -r no-such-file.txt
    set_env =
        PYTHONPATH = {tox_root}
        PYTEST_ADDOPTS = -q
    ignore_errors = true
    commands =
        {env_python} -m pytest tests
        pytest checks
    """
MAKE = "test:\n\tpytest -x tests; python -m pytest -q checks\nown:\n\tPYTHONPATH=. pytest\n"


@pytest.fixture
def shop(tmp_path: Path, write: Write) -> Path:
    write(tmp_path / "shop", TESTS)
    (tmp_path / "shop" / "Makefile").write_text(MAKE)
    return write(tmp_path / "shop", {"noxfile.py": NOX, "other_nox.py": NOX, "tox.ini": TOX})


def map_outcomes(suite_run: SuiteRun) -> dict[str, str]:
    return {case.id: case.outcome.value for case in suite_run.cases}


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    sample_parameters(
        [
            "make test",
            "nox -s tests-3.11",
            "python -m nox --no-venv -f other_nox.py -s tests-3.8",
            "tox -e py311",
            "python -m tox run -e own",
        ],
        1,
    ),
)
def test_results_through_a_wrapper_equal_pytest_alone(command: str, shop: Path, in_sandbox: InSandbox) -> None:
    plain_run = in_sandbox(shop, Suite(runner="pytest", command=("pytest", "tests", "checks")))
    suite = Suite(runner="pytest", command=tuple(command.split()))
    suite_run = in_sandbox(shop, suite, packages=["shop"])
    assert (suite_run.problem, suite_run.unexplained, suite_run.misplaced) == ("", "", ""), suite_run.report.fault
    assert map_outcomes(suite_run) == map_outcomes(plain_run)
    assert sorted(map_outcomes(suite_run).values()) == ["failed"] * 2 + ["passed"] * 5
    selected_ids = ["tests/test_add.py::test_zero", "tests/test_add.py::test_add[1]"]
    assert map_outcomes(in_sandbox(shop, suite, ids=selected_ids)) == {
        item: map_outcomes(plain_run)[item] for item in selected_ids
    }


@pytest.mark.parametrize(
    ("command", "expected_command", "file"),
    [
        ("nox", "nox", "noxfile.py"),
        ("nox -s tests-3.11 lint -R", "nox -s tests lint -R", "noxfile.py"),
        ("nox --no-venv -p 3.11 3.12 -k fast -f ci/nox.py", "nox -k fast", "ci/nox.py"),
        ("uv run nox --noxfile=n.py -s tests-3.11(db='a')", "uv run nox -s tests(db='a')", "n.py"),
    ],
)
def test_nox_session_is_requested_for_every_version(
    command: str, expected_command: str, file: str, environment: Environment
) -> None:
    request = adapt_command(Suite(runner="pytest", command=(*command.split(), "--", "-x", "-p")), environment)
    backend_index = request.argv.index("--force-venv-backend")
    assert (" ".join(request.argv[:backend_index]), request.argv[-3:]) == (expected_command, ("--", "-x", "-p"))
    assert request.variables["REDSTART_NOXFILE"] == file
