"""Whole runs in a project's own environment without pytest: Redstart never switches to another one silently."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.scenarios import CARD, parse_question
from support.server import ScriptedServer, Wire

CODE = "import mine\n\n\ndef add(a, b):\n    return a - b\n"
PYTEST_STYLE = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
UNITTEST_STYLE = """
import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(1, 2), 3)
"""
FIX = """
WHY: it subtracts

calc.py
<<<<<<< SEARCH
    return a - b
=======
    return a + b
>>>>>>> REPLACE
"""


def answer(request) -> str:
    return CARD if parse_question(request) == "remember" else FIX


@pytest.fixture
def project(tmp_path) -> Path:
    """Override the environment of the other scenarios with one that has a package, `mine`, and no pytest."""
    folder = tmp_path / "projects" / "calc" / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "mine.py").write_text("")
    return folder


@pytest.fixture
def calc(project) -> Path:
    repo = project.parent
    (repo / "calc.py").write_text(CODE)
    (repo / ".gitignore").write_text(".venv/\n")
    return repo


def test_unittest_tests_run_in_the_project_environment_without_a_question(user, calc):
    (calc / "test_calc.py").write_text(UNITTEST_STYLE)
    del user.environ["VIRTUAL_ENV"]
    with ScriptedServer(answer) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", calc, "--json", "--no-input")
    assert (result.code, result.ending["result"]) == (0, "verified"), result.out + result.err


def test_missing_pytest_with_no_input_is_an_error_with_a_hint(user, calc):
    (calc / "test_calc.py").write_text(PYTEST_STYLE)
    del user.environ["VIRTUAL_ENV"]
    user.environ["REDSTART_MODELS__STRONG"] = "manual"
    result = user.redstart("fix", calc, "--no-input")
    assert result.code == 2, result.out + result.err
    assert "this project's environment (.venv in the project) does not contain pytest" in result.err
    assert f"{calc}/.venv/bin/python -m pip install pytest" in result.err
    assert not list(calc.glob(".venv/lib/*/site-packages/pytest")), "nothing may be installed"


@pytest.mark.parametrize("command", ["trial calc", "python -m nose2", ".venv/bin/nosetests"])
def test_runner_without_results_per_test_needs_a_report(command, user, calc):
    user.environ["REDSTART_MODELS__STRONG"] = "manual"
    result = user.redstart("fix", calc, "--no-input", "--test-cmd", command)
    assert result.code == 2, result.out + result.err
    assert "gives no results per test without a JUnit XML report (--junit)" in result.err
    assert "--test-cmd" in result.err


@pytest.mark.parametrize(("said", "result"), [("y", "verified"), ("n", None)])
def test_terminal_user_is_offered_redstarts_own_pytest(said, result, user, calc):
    (calc / "test_calc.py").write_text(PYTEST_STYLE)
    del user.environ["VIRTUAL_ENV"]
    with ScriptedServer(answer) as server:
        user.uses(server, Wire.openai)
        code, screen = run_at_terminal(user, said, "fix", str(calc))
    assert "This project's environment (.venv in the project) does not contain pytest." in screen
    assert "Run its tests there with Redstart's own pytest? Nothing is installed. [y/N]" in screen
    assert ("GREEN" in screen) is (result == "verified"), screen
    assert code == (0 if result else 2), screen
    assert ("with Redstart's pytest" in " ".join(screen.split())) is bool(result), screen


def run_at_terminal(user, typed_line: str, *arguments: str) -> tuple[int, str]:
    """Run the command at a terminal and type one line when it asks."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "redstart.cli.main", *arguments], user.environ)
    screen = b""
    try:
        while True:
            prompt_count = screen.count(b"[y/N]")
            screen += os.read(terminal, 4096)
            if screen.count(b"[y/N]") > prompt_count == 0:
                os.write(terminal, f"{typed_line}\n".encode())
            elif screen.count(b"[y/N]") > prompt_count:
                os.write(terminal, b"n\n")
    except OSError:
        pass  # the terminal closes when the command ends
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screen.decode(errors="replace")
