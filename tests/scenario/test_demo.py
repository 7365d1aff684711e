"""The demo as a new user runs it, and the commands that explore its results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXPLORE = "Explore the demo's runs:"


def run_redstart(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
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


def test_demo_results_can_be_explored_separately_from_own_runs(tmp_path):
    demo = run_redstart(tmp_path, "demo")
    assert demo.returncode == 0, demo.stdout + demo.stderr
    commands = [
        line.split()[1:] for line in demo.stdout.split(EXPLORE)[1].splitlines() if line.startswith("  redstart")
    ]
    assert [command[1] for command in commands] == ["runs", "show", "memory"]
    runs, proof, memory = (run_redstart(tmp_path, *command) for command in commands)
    assert (runs.returncode, proof.returncode, memory.returncode) == (0, 0, 0), (
        runs.stderr + proof.stderr + memory.stderr
    )
    assert "demo-1" in runs.stdout
    assert "demo-2" in runs.stdout
    assert "tests/test_basket.py::test_only_unpriced_items" in proof.stdout
    assert "dict.get()" in memory.stdout
    assert "demo-1" not in run_redstart(tmp_path, "runs", "list").stdout
