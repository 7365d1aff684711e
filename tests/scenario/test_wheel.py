"""The wheel as users get it, in a clean environment outside the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.processor import spent_by_children

ROOT = Path(__file__).parents[2]
TIMES = {"time", "seconds", "forecast"}
STARTS = 5


def quiet(*command: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run([str(item) for item in command], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Install the wheel and its locked dependencies in a fresh environment. Return the path of the command."""
    folder = tmp_path_factory.mktemp("clean")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "dist")
    shutil.copytree(ROOT, source, ignore=ignored)
    quiet(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (wheel,) = folder.glob("*.whl")
    uv = shutil.which("uv")
    assert uv, "uv is needed to make the clean environment"
    python = folder / "venv" / "bin" / "python"
    quiet(uv, "venv", "-q", "--python", sys.executable, folder / "venv")
    quiet(uv, "pip", "install", "-q", "--require-hashes", "--python", python, "-r", ROOT / "requirements" / "base.txt")
    quiet(uv, "pip", "install", "-q", "--no-deps", "--python", python, wheel)
    shutil.rmtree(source)
    return folder / "venv" / "bin" / "redstart"


def demo(command: Path, *arguments: str) -> tuple[int, str, float]:
    """Run the demo. Return its exit code, its output and its CPU seconds."""
    home = command.parents[2] / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    before = spent_by_children()
    done = subprocess.run(
        [str(command), "demo", *arguments], cwd=home, env=environ, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr, spent_by_children() - before


def start_of_pytest(python: Path) -> float:
    """Measure the CPU seconds of importing pytest, which the demo does most often."""
    before = spent_by_children()
    for _ in range(STARTS):
        quiet(python, "-c", "import pytest")
    return (spent_by_children() - before) / STARTS


def masked(line: str) -> Any:
    event = json.loads(line)
    event["time"] = 0
    event["data"] = {name: 0 if name in TIMES else value for name, value in event["data"].items()}
    return event


def test_the_demo_runs_from_the_wheel_twice_with_the_same_events(installed):
    logs, starts = [], []
    for _ in range(2):
        code, out, seconds = demo(installed, "--json")
        assert code == 0, out
        starts.append(seconds / start_of_pytest(installed.parent / "python"))
        logs.append([masked(line) for line in out.splitlines()])
    assert logs[0] == logs[1]
    # 30 s if a start takes 0.3 s. The better of the two counts: the first run compiles every module.
    assert min(starts) < 100, starts
    endings = [event["data"] for event in logs[0] if (event["name"], event["phase"]) == ("run", "end")]
    assert [(ending["result"], ending["attempts"]) for ending in endings] == [("verified", 2), ("verified", 1)]
    recalls = [event["data"]["sources"] for event in logs[0] if (event["name"], event["phase"]) == ("plan", "end")]
    assert recalls == [[], ["family"]]


@pytest.mark.soak
def test_the_cheating_demo_is_refused(installed):
    code, out, _ = demo(installed, "--cheat")
    assert code == 6, out
    assert "it is a test" in out
