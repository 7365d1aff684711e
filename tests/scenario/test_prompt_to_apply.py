"""At a terminal, the user is asked whether to apply the patch; Ctrl-C pauses a run and prints how to resume it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.scenarios import Scenario
from support.server import Reply, ScriptedServer, Wire
from support.user import User

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")
QUESTION = "Apply this patch to your working tree? [y/N]: "
SECONDS = 240.0


class AtTerminal:
    """The command in a terminal of 80 columns: `shown` is its output so far."""

    def __init__(self, user: User, *arguments: str, folder: Path | None = None) -> None:
        self._ours, terminal_fd = pty.openpty()
        environ = {**user.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "redstart.cli.main", *arguments]
        self.process = subprocess.Popen(
            command, env=environ, cwd=folder, stdin=terminal_fd, stdout=terminal_fd, stderr=terminal_fd
        )
        os.close(terminal_fd)
        self.shown = ""

    def read_until(self, text: str) -> None:
        deadline = time.monotonic() + SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if not self._read(deadline):
                break
        assert text in self.shown, self.shown

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        deadline = time.monotonic() + SECONDS
        while self._read(deadline):
            pass
        code = self.process.wait(SECONDS)
        os.close(self._ours)
        return code

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))
        try:
            chunk = os.read(self._ours, 65536) if ready else b""
        except OSError:
            return False
        self.shown += chunk.decode(errors="replace").replace("\r\n", "\n")
        return bool(chunk)


@pytest.mark.parametrize(
    ("answer", "applied"), [("y\n", True), pytest.param("\n", False, marks=pytest.mark.soak)], ids=["yes", "default"]
)
def test_patch_is_applied_only_if_the_user_agrees(answer, applied, user, repo_of):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        repo = repo_of(SCENARIO.name)
        before = (repo / "pager.py").read_text()
        terminal = AtTerminal(user, "fix", str(repo))
        terminal.read_until(QUESTION)
        terminal.type(answer)
        assert terminal.end() == 0
    assert ((repo / "pager.py").read_text() != before) is applied
    assert ("Applied. Undo with: redstart undo" in terminal.shown) is applied


def test_unproven_patch_is_accepted_if_the_user_agrees(user, tmp_path):
    repo = tmp_path / "shop"
    report = "<testsuite><testcase name='total'>$bad</testcase></testsuite>"
    script = f'grep -q "[*]" shop.go || bad="<failure/>"\necho "{report}" > out.xml\ntest -z "$bad"\n'
    repo.mkdir()
    for name, text in {"shop.go": "a + b\n", "shop_test.go": "", "all.sh": script}.items():
        (repo / name).write_text(text)
    answer = "WHY: a product\n\nshop.go\n<<<<<<< SEARCH\na + b\n=======\na * b\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: answer) as server:
        user.uses(server, Wire.openai)
        terminal = AtTerminal(user, "fix", str(repo), "--test-cmd", "sh all.sh", "--junit", "out.xml")
        terminal.read_until("Accept this patch as a verified fix? [y/N]: ")
        assert "UNPROVEN  the tests pass by their own report" in terminal.shown
        terminal.type("y\n")
        terminal.read_until(QUESTION)
        terminal.type("y\n")
        assert terminal.end() == 0
    assert (repo / "shop.go").read_text() == "a * b\n"


def test_ctrl_c_pauses_the_run_and_prints_how_to_resume(user, repo_of):
    question_received, release = threading.Event(), threading.Event()

    def reply(request):
        question_received.set()
        return Reply(SCENARIO.reply(request), wait=release)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        terminal = AtTerminal(user, "fix", str(repo_of(SCENARIO.name)))
        terminal.read_until("patch     asking openai:scripted")
        assert question_received.wait(60)
        terminal.process.send_signal(signal.SIGINT)
        terminal.read_until("paused: everything so far is saved; resume with: redstart resume ")
        code = terminal.end()
        release.set()
    assert (code, QUESTION in terminal.shown) == (130, False)


def test_user_is_asked_once_about_check_commands_of_the_repo(user, repo_of):
    repo = repo_of(SCENARIO.name)
    (repo / "redstart.toml").write_text('[checks.commands]\ntheirs = "flake8 ."\n')
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        terminal = AtTerminal(user, "fix", str(repo), "--dry-run")
        terminal.read_until("  theirs: flake8 .\nRun these commands in the sandbox, now and in later runs? [y/N]: ")
        terminal.type("y\n")
        assert terminal.end() == 0
        second_terminal = AtTerminal(user, "fix", str(repo), "--dry-run")
        assert second_terminal.end() == 0
    assert "Run these commands" not in second_terminal.shown


def test_no_input_asks_no_questions(user, repo_of):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        terminal = AtTerminal(user, "fix", str(repo_of(SCENARIO.name)), "--no-input")
        assert terminal.end() == 0
    assert "apply it with: redstart apply" in terminal.shown
    assert QUESTION not in terminal.shown


@pytest.fixture
def partial_run(user: User, tmp_path: Path) -> Path:
    """A repo whose last run fixed one test and set the other aside."""
    repo = tmp_path / "projects" / "shop"
    (repo / "tests").mkdir(parents=True)
    (repo / "conftest.py").write_text("")
    (repo / "shop.py").write_text("def total(prices):\n    return sum(prices) + 1\n")
    tests = {
        "test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n",
        "test_version.py": "from packaging.version import Version\n\n\ndef test_version():\n"
        "    assert Version('1', loose=True)\n",
    }
    for name, text in tests.items():
        (repo / "tests" / name).write_text(text)
    answer = "shop.py\n<<<<<<< SEARCH\n    return sum(prices) + 1\n=======\n    return sum(prices)\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda _: answer) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--no-input", "--verify", "quick")
    assert result.code == 9, result.out + result.err
    return repo


def test_partial_patch_is_applied_only_if_the_user_agrees(user: User, partial_run: Path):
    before = (partial_run / "shop.py").read_text()
    question = "Apply this patch, and leave these tests as they are? [y/N]: "
    for answer, code in (("\n", 1), ("y\n", 0)):
        assert (partial_run / "shop.py").read_text() == before
        terminal = AtTerminal(user, "apply", folder=partial_run)
        terminal.read_until(question)
        assert "+    return sum(prices)\n" in terminal.shown
        assert "still fails: tests/test_version.py::test_version\n" in terminal.shown
        assert "still fails: tests/test_shop.py" not in terminal.shown
        terminal.type(answer)
        assert terminal.end() == code
        assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in terminal.shown.splitlines()) <= 80
    assert (partial_run / "shop.py").read_text() == before.replace(" + 1", "")
