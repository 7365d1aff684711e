"""One engine is the default everywhere: in the commands, in Python and in evaluations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from redstart.app.wire import engine_called
from redstart.cli.main import app
from redstart.engines.langgraph import langgraph
from redstart.engines.port import DEFAULT
from redstart.evals.desk import EvaluationRequest
from redstart.evals.outcome import EvaluationPlan


def test_the_default_is_langgraph_and_its_name_is_known() -> None:
    assert engine_called() is engine_called(DEFAULT) is langgraph


def test_every_command_and_an_evaluation_has_that_default() -> None:
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
def test_a_run_begun_in_python_has_it(tmp_path: Path) -> None:
    (tmp_path / "calc.py").write_text("def value(text):\n    return int(text)\n")
    code = (
        "import sys, redstart\n"
        "redstart.audit('calc.py')\n"
        "print(*({'redstart.engines.inline', 'redstart.engines.langgraph'} & set(sys.modules)))"
    )
    environ = {"REDSTART_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.stdout.strip() == "redstart.engines.langgraph", done.stderr
