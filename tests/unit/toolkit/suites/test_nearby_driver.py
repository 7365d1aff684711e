"""The driver that evaluates expressions in a sandbox answers whatever they do."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from redstart.toolkit.suites.request import read_sandbox_file

pytestmark = pytest.mark.slow


def test_driver_stops_expressions_that_take_too_long(tmp_path: Path):
    module_request = {
        "path": "test_a.py",
        "expressions": ["wait('long')", "wait('short')", "Thing(3)", "iter([1])", "nothing"],
    }
    code = """
    import time

    class Thing:
        def __init__(self, size):
            self.size = size

    def wait(text):
        while text == "long":
            try:
                time.sleep(0.05)
            except Exception:
                pass
        return {"b", "a"}
    """
    (tmp_path / "test_a.py").write_text(textwrap.dedent(code))
    (tmp_path / "redstart_nearby.py").write_text(read_sandbox_file("redstart_nearby.py"))
    question = {"seconds": 30, "each": 0.2, "modules": [module_request, {"path": "absent.py", "expressions": ["1"]}]}
    (tmp_path / "nearby_asked.json").write_text(json.dumps(question))
    argv = [sys.executable, "redstart_nearby.py", str(tmp_path)]
    completed = subprocess.run(argv, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert json.loads((tmp_path / "nearby.json").read_text()) == [
        [None, ["{'a', 'b'}", False], ["Thing({'size': 3})", False], ["[1]", False], ["NameError", True]],
        [None],
    ]
