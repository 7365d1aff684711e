"""A user who owns a cgroup folder, given by an administrator, gets the same limits from cgroups as root.

Two programs run by default; all with a known cause run with --soak.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import redstart
from redstart.ports.sandbox.cgroups import NEEDED, SHARED_FOLDER, USEFUL
from redstart.ports.sandbox.stage import is_reachable
from support.sample import sample_parameters

HERE = Path(__file__).parent
PROGRAMS = sorted(path.name for path in (HERE / "causes").iterdir())
FEW = ["memory_many_processes.py", "processes_bomb.py"]
PATHS = [str(Path(redstart.__file__).parents[1]), sysconfig.get_path("purelib"), str(HERE)]
SOMEBODY, SOMEBODY_ELSE = 60_597, 60_595
SYSTEM_PYTHON = "/usr/bin/python3"
PLAY = """
import asyncio, json, sys, tempfile
from pathlib import Path
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.cgroups import find_own_tree
from redstart.testing.sandbox import FolderWorkspaces
from run_causes import PROGRAMS, ended

async def main(name):
    with tempfile.TemporaryDirectory(prefix="redstart-groups-") as folder:
        workspaces = FolderWorkspaces(Path(folder, "snapshots"))
        box = Bubblewrap(workspaces, Path(folder, "scratch"))
        done = await ended(box, workspaces, PROGRAMS / name, asyncio.Semaphore(1))
        lacks = [each for each in box.lacks if "memory" in each]
        print(json.dumps({"cause": done.cause, "lacks": lacks, "peak": done.peak_memory}))

asyncio.run(main(sys.argv[1]))
"""


RESTARTS = """
import os, sys
from pathlib import Path
from redstart.ports.sandbox import cgroups
print("started", os.getpid(), sys.argv[2:], flush=True)
cgroups.USERS = Path(sys.argv[1])
cgroups.restart_in_own_group()
print("went on", flush=True)
"""
SYSTEMD_RUN = """#!/bin/sh
test -d "$XDG_RUNTIME_DIR/systemd" || exit 1
while [ "$1" != -- ]; do shift; done
shift
if [ "$2" = -c ] && [ "$1" = /bin/sh ]; then echo cpu memory pids; else exec "$@"; fi
"""


@pytest.fixture(scope="module")
def shared_folders() -> Iterator[list[Path]]:
    """Give a user a folder in each hierarchy of version 1. Skips if there are no hierarchies or a folder is in use."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a user a cgroup folder")
    if not all(map(is_reachable, PATHS)):
        pytest.skip("no other user can read this checkout")
    folders = [Path("/sys/fs/cgroup", name, SHARED_FOLDER) for name in (*NEEDED, *USEFUL)]
    if not all((folder.parent / "cgroup.procs").exists() for folder in folders):
        pytest.skip("there are no cgroups of version 1 here")
    try:
        with contextlib.ExitStack() as stack:
            for folder in folders:
                folder.mkdir()
                stack.callback(folder.rmdir)
                for path in (folder, *folder.iterdir()):
                    os.chown(path, SOMEBODY, SOMEBODY)
            yield folders
    except FileExistsError:
        pytest.skip("such a folder already exists")


def run_script(user: int, script: str, *arguments: str, path: str = "") -> list[str]:
    """Run a script as the user and return the lines that it prints."""
    user_prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all", "--"]
    variables = {"PYTHONPATH": os.pathsep.join(PATHS), "PYTHONDONTWRITEBYTECODE": "1"}
    variables["PATH"] = os.pathsep.join(filter(None, (path, os.environ["PATH"])))
    command = [*user_prefix, SYSTEM_PYTHON, "-c", script, *arguments]
    completed = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout.splitlines()


@pytest.mark.parametrize("program", [*FEW, *sample_parameters([name for name in PROGRAMS if name not in FEW], 1)])
def test_reported_cause_is_correct_and_nothing_is_left(program: str, shared_folders: list[Path]) -> None:
    expected = (HERE / "causes" / program).read_text().splitlines()[0].removeprefix("# cause: ")
    report = json.loads(run_script(SOMEBODY, PLAY, program)[-1])
    assert report["lacks"] == []
    assert report["peak"] > 0
    assert report["cause"] == expected, report
    assert [path for folder in shared_folders for path in folder.iterdir() if path.is_dir()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not all(map(is_reachable, PATHS)), reason="no other user can read this checkout")
@pytest.mark.parametrize("manager", [True, False])
def test_program_restarts_at_most_once_with_systemd(manager: bool) -> None:
    """The fake `systemd-run` creates no group but is called and answers like the real one."""
    with tempfile.TemporaryDirectory(prefix="rn-") as name:
        folder = Path(name)
        program = folder / "systemd-run"
        program.write_text(SYSTEMD_RUN)
        runtime = folder / str(SOMEBODY_ELSE) / ("systemd" if manager else "")
        runtime.mkdir(parents=True, exist_ok=True)
        for path in (folder, program, *folder.rglob("*")):
            path.chmod(0o755)
        lines = run_script(SOMEBODY_ELSE, RESTARTS, name, "--flag", path=name)
    starts = [line for line in lines if line.startswith("started")]
    assert len(starts) == (2 if manager else 1)
    assert len(set(starts)) == 1, "it is the same process with the same arguments"
    assert lines[-1] == "went on"
    assert lines.count("went on") == 1
