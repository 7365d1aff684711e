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
def test_the_interpreter_is_taken_down_only_where_nobody_calls_into_it(arguments, code):
    for loaded in (True, False):
        program = LEAVES.format(loaded=loaded, arguments=arguments)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert done.returncode == code
        assert "redstart" in done.stdout + done.stderr
        assert ("taken down" in done.stdout) is not loaded
