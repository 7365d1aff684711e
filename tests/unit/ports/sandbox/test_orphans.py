"""A process that runs a sandbox may be killed at any moment; nothing that it started survives."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from redstart.core.errors import SandboxUnavailable
from redstart.ports.sandbox.bwrap import probe
from redstart.ports.sandbox.stage import get_own_rights
from redstart.testing.contracts.fixtures import find_processes

pytestmark = pytest.mark.slow

RUNNER = """
import asyncio, sys
from pathlib import Path
from redstart.core.shell import Environment, Execution
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.cgroups import find_own_tree
from redstart.ports.sandbox.stage import get_own_rights
from redstart.testing.sandbox import FolderWorkspaces

folder, token = Path(sys.argv[1]), sys.argv[2]
workspaces = FolderWorkspaces(folder / "snapshots")
argv = ("/bin/sh", "-c", f"sleep 300; : {token}")
environment = Environment(mount="/repo", python="/usr/bin/python3")
execution = Execution(argv=argv, snapshot=workspaces.create_snapshot("one", {"a": "a"}), environment=environment)
get_own_rights(), find_own_tree()
print("ready", flush=True)
asyncio.run(Bubblewrap(workspaces, folder / "scratch").run(execution))
"""


@pytest.mark.parametrize("moment", [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.2])
def test_killed_runner_leaves_no_process(tmp_path: Path, moment: float) -> None:
    try:
        probe(tmp_path)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    if not get_own_rights().mounts:
        pytest.skip("bubblewrap alone does not guarantee that")
    token = f"redstart-{uuid.uuid4().hex}"
    with subprocess.Popen([sys.executable, "-c", RUNNER, str(tmp_path), token], stdout=subprocess.PIPE) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"ready\n"
        time.sleep(moment)  # waits for no event: the test varies the moment of the kill
        runner.kill()
    deadline = time.monotonic() + 10
    while find_processes(token) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert find_processes(token) == []
