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
def test_every_aim_of_the_short_form_holds(drill):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REDSTART_")}
    command = [sys.executable, str(CHAOS), "--quick", "--drill", drill]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert [message for message in told["figures"] if not message.get("holds", True)] == [], done.stdout + done.stderr
    assert (told["bench"], done.returncode) == ("chaos", 0)
    assert any("aim" in message for message in told["figures"])
