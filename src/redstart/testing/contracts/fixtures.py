"""Fixtures for the contracts of sandboxes: a snapshot, an environment, and a way to run Python in a sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from redstart.core.change import Snapshot
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.port import Sandbox
from redstart.testing.sandbox import FolderWorkspaces


def with_copies(environment: Environment, *copies: str) -> Environment:
    """Create some ignored files, each containing its own name, and request these copies."""
    repo = Path(environment.mount)
    for name in ("pkg/inner.txt", "pkg/built.so", "data/deep/a", "data/run"):
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (repo / "data/run").chmod(0o755)
    return environment.model_copy(update={"copies": copies})


def with_history(environment: Environment) -> Environment:
    """Create a git repo with one commit and a tag at the mount."""
    top = Path(environment.mount)
    (top / "pkg").mkdir(parents=True)
    for path, text in ((top / "hello.txt", "as committed\n"), (top / "pkg" / "inner.txt", "inner\n")):
        path.write_text(text)
    _run_git(top, "init", "-q")
    _run_git(top, "config", "user.name", "of the user")
    _run_git(top, "remote", "add", "origin", "https://user:password@example.invalid/repo")
    _run_git(top, "add", "-A")
    _run_git(top, "-c", "user.email=a@example.invalid", "commit", "-qm", "first")
    _run_git(top, "tag", "v1.0")
    head = _run_git(top, "rev-parse", "HEAD")
    return environment.model_copy(
        update={
            "git_objects": str(top / ".git" / "objects"),
            "git_head": head,
            "git_refs": f"# pack-refs with: peeled fully-peeled sorted \n{head} refs/tags/v1.0\n",
        }
    )


def _run_git(folder: Path, *arguments: str) -> str:
    completed = subprocess.run(("git", "-C", folder, *arguments), capture_output=True, text=True, check=True)
    return completed.stdout.strip()


MEGABYTE = 1 << 20
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1)
        os.close(2)
        open('up', 'w')
        time.sleep(300)
    os._exit(0)
while not os.path.exists('up'):
    time.sleep(0.01)
print('the daemon is up', flush=True)
"""


def find_processes(token: str) -> list[int]:
    """Find the host's processes, as seen outside any sandbox, with `token` in their arguments."""
    pids: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if token.encode() in (entry / "cmdline").read_bytes():
                pids.append(int(entry.name))
    return pids


class ContractFixtures:
    """Fixtures that the contracts of sandboxes share."""

    @pytest.fixture
    def workspaces(self, tmp_path: Path) -> FolderWorkspaces:
        return FolderWorkspaces(tmp_path / "snapshots")

    @pytest.fixture
    def scratch(self, tmp_path: Path) -> Path:
        return tmp_path / "scratch"

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        raise NotImplementedError("a subclass makes its adapter here")

    @pytest.fixture
    def snapshot(self, workspaces: FolderWorkspaces) -> Snapshot:
        files = {"hello.txt": "hello\n", "pkg/inner.txt": "inner\n", "src/thing/__init__.py": "WHERE = __file__\n"}
        return workspaces.create_snapshot("one", files)

    @pytest.fixture
    def environment(self, tmp_path: Path) -> Environment:
        mount = str(tmp_path / "repo")
        return Environment(mount=mount, python=sys.executable, read_only=(sys.prefix, sys.base_prefix))

    @pytest.fixture
    def token(self) -> str:
        """Return a word that no other process has in its arguments."""
        return f"redstart-{uuid.uuid4().hex}"

    @pytest.fixture
    def python(self, sandbox: Sandbox, snapshot: Snapshot, environment: Environment) -> PythonProgram:
        return PythonProgram(sandbox, snapshot, environment)


class PythonProgram:
    """Runs a Python program in the current sandbox. `request` only creates the execution."""

    def __init__(self, sandbox: Sandbox, snapshot: Snapshot, environment: Environment) -> None:
        self.sandbox = sandbox
        self.snapshot = snapshot
        self.environment = environment

    def request(self, code: str = "", *, argv: tuple[str, ...] = (), **fields: Any) -> Execution:
        fields.setdefault("limits", SandboxLimits(wall=60))
        fields.setdefault("environment", self.environment)
        argv = argv or (self.environment.python, "-c", code)
        return Execution(argv=argv, snapshot=self.snapshot, **fields)

    def __call__(self, code: str = "", *, argv: tuple[str, ...] = (), **fields: Any) -> Completed:
        return asyncio.run(self.sandbox.run(self.request(code, argv=argv, **fields)))

    def cut_short(self, code: str = "", *, wall: float, **fields: Any) -> Completed:
        """Run a program that prints something and then does not end, with a time limit of `wall` seconds.

        If the machine is so busy that there is no output by then, the limit is ten times as long.
        """
        completed = self(code, limits=SandboxLimits(wall=wall), **fields)
        return (
            completed
            if completed.output or completed.files
            else self(code, limits=SandboxLimits(wall=10 * wall), **fields)
        )
