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

from support.processor import measure_children_cpu

ROOT = Path(__file__).parents[2]
TIMES = {"time", "seconds", "forecast"}
STARTS = 5


def run_quietly(*command: str | Path, cwd: Path | None = None) -> None:
    completed = subprocess.run([str(item) for item in command], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Install the wheel and its locked dependencies in a fresh environment. Return the path of the command."""
    folder = tmp_path_factory.mktemp("clean")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".*", "__pycache__", "dist")
    shutil.copytree(ROOT, source, ignore=ignored)
    run_quietly(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    (wheel,) = folder.glob("*.whl")
    uv = shutil.which("uv")
    assert uv, "uv is needed to make the clean environment"
    python = folder / "venv" / "bin" / "python"
    run_quietly(uv, "venv", "-q", "--python", sys.executable, folder / "venv")
    run_quietly(
        uv, "pip", "install", "-q", "--require-hashes", "--python", python, "-r", ROOT / "requirements" / "base.txt"
    )
    run_quietly(uv, "pip", "install", "-q", "--no-deps", "--python", python, wheel)
    shutil.rmtree(source)
    return folder / "venv" / "bin" / "redstart"


def run_demo(command: Path, *arguments: str) -> tuple[int, str, float]:
    """Run the demo. Return its exit code, its output and its CPU seconds."""
    home = command.parents[2] / "home"
    home.mkdir(exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    cpu_before = measure_children_cpu()
    completed = subprocess.run(
        [str(command), "demo", *arguments], cwd=home, env=environ, capture_output=True, text=True, timeout=300
    )
    return completed.returncode, completed.stdout + completed.stderr, measure_children_cpu() - cpu_before


def measure_pytest_start(python: Path) -> float:
    """Measure the CPU seconds of importing pytest, which the demo does most often."""
    cpu_before = measure_children_cpu()
    for _ in range(STARTS):
        run_quietly(python, "-c", "import pytest")
    return (measure_children_cpu() - cpu_before) / STARTS


def mask_event(line: str) -> Any:
    event = json.loads(line)
    event["time"] = 0
    event["data"] = {name: 0 if name in TIMES else value for name, value in event["data"].items()}
    return event


def test_demo_from_the_wheel_gives_the_same_events_twice(installed):
    logs, starts = [], []
    for _ in range(2):
        code, out, seconds = run_demo(installed, "--json")
        assert code == 0, out
        starts.append(seconds / measure_pytest_start(installed.parent / "python"))
        logs.append([mask_event(line) for line in out.splitlines()])
    assert logs[0] == logs[1]
    # 30 s if a start takes 0.3 s. The better of the two counts: the first run compiles every module.
    assert min(starts) < 100, starts
    endings = [event["data"] for event in logs[0] if (event["name"], event["phase"]) == ("run", "end")]
    assert [(ending["result"], ending["attempts"]) for ending in endings] == [("verified", 2), ("verified", 1)]
    recalls = [event["data"]["sources"] for event in logs[0] if (event["name"], event["phase"]) == ("plan", "end")]
    assert recalls == [[], ["family"]]


@pytest.mark.soak
def test_cheating_demo_is_refused(installed):
    code, out, _ = run_demo(installed, "--cheat")
    assert code == 6, out
    assert "it is a test" in out
