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

from redstart.app.recent_runs import list_recent_runs
from redstart.app.runs import RunRequest, create_fix_run
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_app
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
    with open_app(Settings(home=home, models=Models(strong="openai:x")), world=NumberedWorld("run")) as app:
        for _ in range(2):
            asyncio.run(create_fix_run(app, folder, RunRequest(Limits(), own_python=True)))
    monkeypatch.setenv("REDSTART_HOME", str(home))
    return home


def list_completions(command_line: str, begun: str) -> list[str]:
    """Return what bash offers when Tab is pressed after the words."""
    bash = shutil.which("bash")
    assert bash
    script = IN_BASH.format(words=command_line, begun=begun, count=len(command_line.split()))
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    completed = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True, env=environ)
    return completed.stdout.split()


@pytest.mark.parametrize("words", ["redstart show", "redstart runs cancel"])
def test_bash_completes_run_ids(words, home):
    assert set(list_completions(words, "")) == {"run-1", "run-2"}


def test_only_cancellable_runs_are_offered_to_cancel(home):
    with sqlite3.connect(home / "redstart.db") as connection:
        connection.execute("UPDATE runs SET status = 'finished', result = 'verified' WHERE id = 'run-1'")
    assert set(list_completions("redstart runs pause", "")) == {"run-2"}
    assert set(list_completions("redstart runs watch", "")) == {"run-1", "run-2"}
    with sqlite3.connect(home / "redstart.db") as connection:
        connection.execute("UPDATE runs SET control = 'cancel' WHERE id = 'run-2'")
    assert list_completions("redstart runs cancel", "") == []


def test_demo_flag_offers_the_runs_of_the_demo(home):
    home.rename(home.parent / "demo")
    home.mkdir()
    (home.parent / "demo").rename(home / "demo")
    assert set(list_completions("redstart --demo show", "")) == {"run-1", "run-2"}
    assert list_recent_runs("") == []


def test_only_ids_with_the_typed_prefix_are_offered(home):
    assert [(run.run_id, run.mode, run.repo) for run in list_recent_runs("run-2")] == [("run-2", "fix", "shop")]
    assert list_recent_runs("x") == []


def test_missing_store_offers_nothing_and_is_not_created(tmp_path, monkeypatch):
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "none"))
    assert list_recent_runs("") == []
    assert not (tmp_path / "none").exists()
