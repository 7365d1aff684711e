"""Tab completion offers run IDs in a real bash."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.app.recent import recent_runs
from redstart.app.runs import RunRequest, begin_fix
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_house
from redstart.core.run import Limits
from redstart.ports.world.system import NumberedWorld

pytestmark = pytest.mark.slow

IN_BASH = """
eval "$(redstart --show-completion bash)"
COMP_WORDS=({words} "{begun}"); COMP_CWORD={count}
_redstart_completion redstart
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a store with two runs."""
    home = tmp_path / "home"
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "test_it.py").write_text("def test_it():\n    assert True\n")
    with open_house(Settings(home=home, models=Models(strong="openai:x")), world=NumberedWorld("run")) as house:
        for _ in range(2):
            asyncio.run(begin_fix(house, folder, RunRequest(Limits(), own_python=True)))
    monkeypatch.setenv("REDSTART_HOME", str(home))
    return home


def offered(words: str, begun: str) -> list[str]:
    """Return what bash offers when Tab is pressed after the words."""
    bash = shutil.which("bash")
    assert bash
    script = IN_BASH.format(words=words, begun=begun, count=len(words.split()))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True, env=environ)
    return ran.stdout.split()


@pytest.mark.parametrize("words", ["redstart show", "redstart runs cancel"])
def test_bash_offers_the_ids_of_runs(words, home):
    assert set(offered(words, "")) == {"run-1", "run-2"}


def test_only_runs_that_can_be_cancelled_are_offered_to_cancel(home):
    with sqlite3.connect(home / "redstart.db") as connection:
        connection.execute("UPDATE runs SET status = 'finished', result = 'verified' WHERE id = 'run-1'")
    assert set(offered("redstart runs pause", "")) == {"run-2"}
    assert set(offered("redstart runs watch", "")) == {"run-1", "run-2"}
    with sqlite3.connect(home / "redstart.db") as connection:
        connection.execute("UPDATE runs SET control = 'cancel' WHERE id = 'run-2'")
    assert offered("redstart runs cancel", "") == []


def test_of_the_demo_its_own_runs_are_offered(home):
    home.rename(home.parent / "demo")
    home.mkdir()
    (home.parent / "demo").rename(home / "demo")
    assert set(offered("redstart --demo show", "")) == {"run-1", "run-2"}
    assert recent_runs("") == []


def test_only_ids_that_begin_so_are_offered(home):
    assert [(run.run_id, run.mode, run.repo) for run in recent_runs("run-2")] == [("run-2", "fix", "shop")]
    assert recent_runs("x") == []


def test_where_nothing_ran_yet_nothing_is_offered_and_nothing_made(tmp_path, monkeypatch):
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "none"))
    assert recent_runs("") == []
    assert not (tmp_path / "none").exists()
