"""The demo as a new user runs it, and the commands that explore its results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXPLORE = "Explore what the demo left:"


def redstart(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "REDSTART_HOME": str(home / "data"), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "redstart.cli.main", *arguments],
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_what_the_demo_left_can_be_explored_apart_from_ones_own_runs(tmp_path):
    demo = redstart(tmp_path, "demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    commands = [
        line.split()[1:] for line in demo.stdout.split(EXPLORE)[1].splitlines() if line.startswith("  redstart")
    ]
    assert [words[1] for words in commands] == ["runs", "show", "memory"]
    runs, proof, memory = (redstart(tmp_path, *words) for words in commands)
    assert (runs.returncode, proof.returncode, memory.returncode) == (0, 0, 0), (
        runs.stderr + proof.stderr + memory.stderr
    )
    assert "demo-1" in runs.stdout
    assert "demo-2" in runs.stdout
    assert "tests/test_basket.py::test_only_unpriced_items" in proof.stdout
    assert "dict.get()" in memory.stdout
    assert "demo-1" not in redstart(tmp_path, "runs", "list").stdout
