"""The driver that evaluates expressions in a sandbox answers whatever they do."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from redstart.toolkit.suites.request import inside

pytestmark = pytest.mark.slow


def test_the_driver_stops_what_takes_too_long(tmp_path: Path):
    asked = {"path": "test_a.py", "expressions": ["wait('long')", "wait('short')", "Thing(3)", "iter([1])", "nothing"]}
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
    (tmp_path / "redstart_nearby.py").write_text(inside("redstart_nearby.py"))
    question = {"seconds": 30, "each": 0.2, "modules": [asked, {"path": "absent.py", "expressions": ["1"]}]}
    (tmp_path / "nearby_asked.json").write_text(json.dumps(question))
    argv = [sys.executable, "redstart_nearby.py", str(tmp_path)]
    done = subprocess.run(argv, cwd=tmp_path, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "nearby.json").read_text()) == [
        [None, ["{'a', 'b'}", False], ["Thing({'size': 3})", False], ["[1]", False], ["NameError", True]],
        [None],
    ]
