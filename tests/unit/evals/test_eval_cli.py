"""`redstart eval` as typed in a shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.evals.task import Task, write_tasks

pytestmark = pytest.mark.slow

ORACLE = "instrument:oracle-at-recall"


def run_redstart(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept_variables = {
        name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH", "VIRTUAL_ENV")
    }
    environ = {**kept_variables, "HOME": str(home), "REDSTART_HOME": str(home / "redstart")}
    command = [sys.executable, "-m", "redstart.cli.main", "eval", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def tasks(task: Task, tmp_path: Path) -> str:
    """Write a usable task and one whose fix fixes nothing."""
    no_fix = task.model_copy(update={"id": "calc/none", "fix": task.fix.model_copy(update={"files": {"x.py": "1\n"}})})
    write_tasks([task, no_fix], tmp_path / "tasks.jsonl")
    return str(tmp_path / "tasks.jsonl")


def test_old_name_of_check_tasks_works_but_is_hidden(tmp_path: Path) -> None:
    help_text, old = run_redstart(tmp_path, "--help").stdout, run_redstart(tmp_path, "verify", "--help")
    assert "check-tasks" in help_text
    assert "  verify " not in help_text
    assert (old.returncode, "Check that each task's tests fail" in old.stdout) == (0, True)


def test_task_set_can_be_checked_run_reported_compared_and_exported(tasks: str, tmp_path: Path) -> None:
    verified = run_redstart(tmp_path, "check-tasks", tasks, "--repeats", "1")
    assert "unusable: calc/none: does not pass with its reference fix" in verified.stdout, verified.stderr
    assert "1 of 2 tasks usable: tests fail before the reference fix and pass after it" in verified.stdout
    assert "[1/2] calc/double: fails, then passes" in verified.stderr
    run = ("run", tasks, "-m", ORACLE, "--verify", "quick", "--looks", "0", "--name", "one")
    first_result = run_redstart(tmp_path, *run)
    assert "[1/1] calc/double seed 0 run 1: solved" in first_result.stdout, first_result.stdout + first_result.stderr
    assert "all runs have finished" in run_redstart(tmp_path, *run).stdout
    report = json.loads(run_redstart(tmp_path, "report", "one", "--json").stdout)
    assert (report["tasks"], report["pass_at_1"]["value"]) == (1, 1.0)
    tenant = run_redstart(tmp_path, "report", "one").stdout.rpartition("REDSTART_TENANT=")[2].split()[0]
    assert (tmp_path / "redstart" / "tenants" / tenant / "snapshots").is_dir()
    assert "no difference is shown" in run_redstart(tmp_path, "compare", "one", "one").stdout
    predicted = json.loads(run_redstart(tmp_path, "export-predictions", "one").stdout)
    assert predicted["instance_id"] == "calc/double"
    assert "-    total = number + number + 1" in predicted["model_patch"]


def test_user_error_is_reported_without_a_traceback(tmp_path: Path) -> None:
    for arguments, message in (
        (("run", "nowhere"), "there is no set 'nowhere'"),
        (("report", "none"), "unknown evaluation none"),
        (("mine", str(tmp_path / "none"), "--out", "x"), "is not a directory"),
    ):
        completed = run_redstart(tmp_path, *arguments)
        assert completed.returncode == 2, completed.stderr
        assert message in completed.stderr
        assert "Traceback" not in completed.stderr
