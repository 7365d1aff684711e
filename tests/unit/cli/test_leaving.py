"""A process ends at once if a shutdown could lose its exit code: with Temporal's library, or without its terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from redstart.cli.sandbox import TERMINAL_CLOSED_EXIT_CODE

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


CLOSED = """
import sys
from redstart.cli import main
def run():
    sys.stdout.write("nobody reads this")
    raise SystemExit({code})
main._run = run
main.main()
"""


def test_output_that_a_closed_terminal_did_not_take_does_not_change_the_exit_code():
    program = CLOSED.format(code=TERMINAL_CLOSED_EXIT_CODE)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    try:
        completed = subprocess.run([sys.executable, "-c", program], stdout=writer, env=environ, timeout=300)
    finally:
        os.close(writer)
    assert completed.returncode == TERMINAL_CLOSED_EXIT_CODE
