"""At a terminal, the user is asked whether to apply the patch; Ctrl-C pauses a run and prints how to resume it."""

from __future__ import annotations

import os
import pty
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

    def __init__(self, user: User, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        environ = {**user.environ, "TERM": "xterm", "COLUMNS": "80", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "redstart.cli.main", *arguments]
        self.process = subprocess.Popen(command, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.shown = ""

    def until(self, text: str) -> None:
        over = time.monotonic() + SECONDS
        while text not in self.shown:
            assert time.monotonic() < over, self.shown
            if not self._read(over):
                break
        assert text in self.shown, self.shown

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        over = time.monotonic() + SECONDS
        while self._read(over):
            pass
        code = self.process.wait(SECONDS)
        os.close(self._ours)
        return code

    def _read(self, over: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(over - time.monotonic(), 0))
        try:
            chunk = os.read(self._ours, 65536) if ready else b""
        except OSError:
            return False
        self.shown += chunk.decode(errors="replace").replace("\r\n", "\n")
        return bool(chunk)


@pytest.mark.parametrize(
    ("answer", "applied"), [("y\n", True), pytest.param("\n", False, marks=pytest.mark.soak)], ids=["yes", "default"]
)
def test_the_patch_is_applied_where_the_user_says_so(answer, applied, user, repo_of):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        repo = repo_of(SCENARIO.name)
        before = (repo / "pager.py").read_text()
        opened = AtTerminal(user, "fix", str(repo))
        opened.until(QUESTION)
        opened.type(answer)
        assert opened.end() == 0
    assert ((repo / "pager.py").read_text() != before) is applied
    assert ("Applied. Undo with: redstart undo" in opened.shown) is applied


def test_a_patch_that_is_unproven_is_accepted_where_the_user_says_so(user, tmp_path):
    repo = tmp_path / "shop"
    report = "<testsuite><testcase name='total'>$bad</testcase></testsuite>"
    script = f'grep -q "[*]" shop.go || bad="<failure/>"\necho "{report}" > out.xml\ntest -z "$bad"\n'
    repo.mkdir()
    for name, text in {"shop.go": "a + b\n", "shop_test.go": "", "all.sh": script}.items():
        (repo / name).write_text(text)
    answer = "WHY: a product\n\nshop.go\n<<<<<<< SEARCH\na + b\n=======\na * b\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: answer) as server:
        user.uses(server, Wire.openai)
        opened = AtTerminal(user, "fix", str(repo), "--test-cmd", "sh all.sh", "--junit", "out.xml")
        opened.until("Accept this patch as a verified fix? [y/N]: ")
        assert "UNPROVEN  the tests pass by their own report" in opened.shown
        opened.type("y\n")
        opened.until(QUESTION)
        opened.type("y\n")
        assert opened.end() == 0
    assert (repo / "shop.go").read_text() == "a * b\n"


def test_ctrl_c_pauses_the_run_and_says_how_to_resume(user, repo_of):
    asked, release = threading.Event(), threading.Event()

    def reply(request):
        asked.set()
        return Reply(SCENARIO.reply(request), wait=release)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        opened = AtTerminal(user, "fix", str(repo_of(SCENARIO.name)))
        opened.until("patch     asking openai:scripted")
        assert asked.wait(60)
        opened.process.send_signal(signal.SIGINT)
        opened.until("paused: everything so far is saved; resume with: redstart resume ")
        code = opened.end()
        release.set()
    assert (code, QUESTION in opened.shown) == (130, False)


def test_check_commands_of_the_repo_are_asked_about_once(user, repo_of):
    repo = repo_of(SCENARIO.name)
    (repo / "redstart.toml").write_text('[checks.commands]\ntheirs = "flake8 ."\n')
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        opened = AtTerminal(user, "fix", str(repo), "--dry-run")
        opened.until("  theirs: flake8 .\nRun these commands in the sandbox, now and in later runs? [y/N]: ")
        opened.type("y\n")
        assert opened.end() == 0
        again = AtTerminal(user, "fix", str(repo), "--dry-run")
        assert again.end() == 0
    assert "Run these commands" not in again.shown


def test_nobody_is_asked_with_no_input(user, repo_of):
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        opened = AtTerminal(user, "fix", str(repo_of(SCENARIO.name)), "--no-input")
        assert opened.end() == 0
    assert "apply it with: redstart apply" in opened.shown
    assert QUESTION not in opened.shown
