"""A process that used Temporal's library ends at once, with its exit code and all its output."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LEAVES = """
import atexit, sys, types
if {loaded}:
    sys.modules["temporalio"] = types.ModuleType("temporalio")
atexit.register(print, "taken down")
sys.argv = ["redstart", *{arguments!r}]
from redstart.cli.main import main
main()
"""


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["no-such-command"], 2)])
def test_normal_interpreter_shutdown_is_skipped_only_with_temporal_loaded(arguments, code):
    for is_loaded in (True, False):
        program = LEAVES.format(loaded=is_loaded, arguments=arguments)
        completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert completed.returncode == code
        assert "redstart" in completed.stdout + completed.stderr
        assert ("taken down" in completed.stdout) is not is_loaded
