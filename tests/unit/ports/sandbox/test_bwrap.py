"""When bubblewrap is missing, broken or refused, the error tells the user what to do."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Environment, Execution
from redstart.ports.sandbox import bwrap
from redstart.ports.sandbox.bwrap import Bubblewrap, BubblewrapPipes, find_bubblewrap, find_remedy
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.selection import choose
from redstart.testing.sandbox import FolderWorkspaces

pytestmark = pytest.mark.slow


class FakeProgram:
    """A shell script in place of bubblewrap."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, script: str, version: str = "0.8.0") -> None:
        self._path.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo bubblewrap {version}; exit; fi\n{script}\n'
        )
        self._path.chmod(0o755)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "bin" / "bwrap"
    path.parent.mkdir()
    monkeypatch.setattr(bwrap, "PROGRAM", str(path))
    monkeypatch.setenv("PATH", str(path.parent))
    find_bubblewrap.cache_clear()
    yield FakeProgram(path)
    find_bubblewrap.cache_clear()


@pytest.fixture
def workspaces(tmp_path: Path) -> FolderWorkspaces:
    return FolderWorkspaces(tmp_path / "snapshots")


def run(workspaces: FolderWorkspaces, scratch: Path) -> None:
    snapshot = workspaces.create_snapshot("one", {"a.txt": "a"})
    environment = Environment(mount="/redstart-repo", python="/usr/bin/python3")
    execution = Execution(argv=("/bin/true",), snapshot=snapshot, environment=environment)
    asyncio.run(Bubblewrap(workspaces, scratch).run(execution))


def test_missing_bubblewrap_is_reported(program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="not installed") as caught:
        run(workspaces, tmp_path / "scratch")
    assert "apt install bubblewrap" in caught.value.remedy
    assert "dnf install bubblewrap" in caught.value.remedy


def test_outdated_bubblewrap_is_reported(program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    program.write("exit 0", version="0.4.1")
    with pytest.raises(SandboxUnavailable, match=r"bubblewrap 0\.4\.1 is too old"):
        run(workspaces, tmp_path / "scratch")


def test_missing_namespace_permission_is_reported(
    program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path
) -> None:
    program.write("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    with pytest.raises(SandboxUnavailable, match="uid map") as caught:
        run(workspaces, tmp_path / "scratch")
    assert "namespaces" in caught.value.remedy


@pytest.mark.parametrize("script", ["exit 0", "exit 1", "kill -9 $$"])
def test_death_of_bubblewrap_is_reported(
    program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path, script: str
) -> None:
    program.write(script)
    with pytest.raises(SandboxUnavailable, match="died"):
        run(workspaces, tmp_path / "scratch")


def test_status_shows_whether_the_command_ended() -> None:
    with BubblewrapPipes() as wires:
        assert not wires.command_ended
        os.write(wires.status, b'{ "child-pid": 12 }\n')
        assert not wires.command_ended
        os.write(wires.status, b'{ "exit-code": 1 }\n')
        assert wires.command_ended


def kill_monitor(first_pid: str) -> int:
    """Kill a program that reports `first_pid` as its first process; return its exit code, 7 if it exits itself."""
    script = f'sleep 300 & echo "{{ \\"child-pid\\": {first_pid} }}" >/proc/self/fd/$0; echo ready; wait; exit 7'
    with BubblewrapPipes() as wires:
        argv = ["/bin/sh", "-c", script, str(wires.status)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, pass_fds=wires.fds, start_new_session=True) as monitor:
            assert monitor.stdout is not None
            assert monitor.stdout.readline() == b"ready\n"
            wires.kill(monitor.pid)
            assert monitor.stdout.read() == b""  # returns only when the sleeper is dead too
            return monitor.wait(60)


def test_first_inner_process_is_killed_and_the_monitor_waits_for_it() -> None:
    assert kill_monitor("$!") == 7


def test_monitor_is_killed_before_the_first_inner_process_exists() -> None:
    assert kill_monitor("") == -signal.SIGKILL


def test_unrelated_process_with_the_same_id_is_not_killed() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other_process:
        assert kill_monitor(str(other_process.pid)) == -signal.SIGKILL
        assert other_process.communicate(b"alive")[0] == b"alive"


def test_remedy_matches_the_error(tmp_path: Path) -> None:
    switch = tmp_path / "restrict"
    assert "kernel.unprivileged_userns_clone" in find_remedy(
        "bwrap: setting up uid map: Permission denied", restriction_file=switch
    )
    switch.write_text("1\n")
    for message in (
        "bwrap: setting up uid map: Permission denied",
        "loopback: Failed RTM_NEWADDR: Operation not permitted",
    ):
        assert "AppArmor" in find_remedy(message, restriction_file=switch)
    switch.write_text("0\n")
    assert "AppArmor" not in find_remedy("No permissions to create new namespace", restriction_file=switch)
    assert (
        find_remedy("bwrap: Can't find source path /nowhere: No such file or directory", restriction_file=switch) == ""
    )


def test_running_without_a_sandbox_requires_consent(
    program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path
) -> None:
    with pytest.raises(SandboxUnavailable) as caught:
        choose(workspaces, tmp_path / "scratch")
    assert "apt install bubblewrap" in caught.value.remedy
    assert "--unsafe-no-sandbox" in caught.value.remedy


@pytest.mark.parametrize("script", ["exit 1", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"])
def test_broken_sandbox_is_not_chosen(
    program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path, script: str
) -> None:
    program.write(script)
    assert isinstance(choose(workspaces, tmp_path / "scratch", unsafe=True), Process)
    with pytest.raises(SandboxUnavailable, match="died"):
        choose(workspaces, tmp_path / "scratch")


def test_working_sandbox_is_chosen_even_when_none_is_required(
    program: FakeProgram, workspaces: FolderWorkspaces, tmp_path: Path
) -> None:
    program.write("exit 0")
    for unsafe in (True, False):
        assert isinstance(choose(workspaces, tmp_path / "scratch", unsafe=unsafe), Bubblewrap)
