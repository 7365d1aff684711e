"""One engine is the default everywhere: in the commands, in Python and in evaluations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from redstart.app.wire import load_engine
from redstart.cli.main import app
from redstart.engines.langgraph import run_langgraph
from redstart.engines.port import DEFAULT
from redstart.evals.app import EvaluationRequest
from redstart.evals.outcome import EvaluationPlan


def test_default_engine_is_langgraph() -> None:
    assert load_engine() is load_engine(DEFAULT) is run_langgraph


def test_every_command_and_evaluation_uses_the_default_engine() -> None:
    group = typer.main.get_command(app)
    commands = {**group.commands, **group.commands["eval"].commands}  # type: ignore[attr-defined]
    defaults = {
        name: str(parameter.default.value)
        for name, command in commands.items()
        for parameter in command.params
        if parameter.name == "engine" and parameter.default is not None
    }
    assert defaults == dict.fromkeys(("audit", "create", "fix", "improve", "run"), DEFAULT)
    assert EvaluationRequest("tasks.jsonl").engine == DEFAULT
    assert EvaluationPlan(name="e", source="s", tasks="t", model="m").engine == DEFAULT


@pytest.mark.slow
def test_run_started_from_python_uses_the_default_engine(tmp_path: Path) -> None:
    (tmp_path / "calc.py").write_text("def value(text):\n    return int(text)\n")
    code = (
        "import sys, redstart\n"
        "redstart.audit('calc.py')\n"
        "print(*({'redstart.engines.inline', 'redstart.engines.langgraph'} & set(sys.modules)))"
    )
    environ = {"REDSTART_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    completed = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert completed.stdout.strip() == "redstart.engines.langgraph", completed.stderr
