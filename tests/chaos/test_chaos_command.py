"""The quick form of the drills, as `just chaos --quick` runs them: every aim holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parent.parent.parent / "bench" / "chaos.py"
SECONDS = 600


@pytest.mark.parametrize(
    "drill",
    [
        "storm",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("kills", "frozen", "fairness", "privilege")),
    ],
)
def test_every_goal_of_the_quick_drill_is_met(drill):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REDSTART_")}
    command = [sys.executable, str(CHAOS), "--quick", "--drill", drill]
    completed = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert completed.stdout, completed.stderr
    report = json.loads(completed.stdout.splitlines()[-1])
    assert [message for message in report["figures"] if not message.get("holds", True)] == [], (
        completed.stdout + completed.stderr
    )
    assert (report["bench"], completed.returncode) == ("chaos", 0)
    assert any("aim" in message for message in report["figures"])
