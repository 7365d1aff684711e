"""All sandboxes behave alike; the isolating ones also isolate."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox import bwrap
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.cgroups import PREFIX, find_own_tree
from redstart.ports.sandbox.leftovers import mark
from redstart.ports.sandbox.port import Sandbox, SandboxLack
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.stage import ProcessRights
from redstart.ports.sandbox.warm.zygote import WarmSession
from redstart.testing.contracts.fixtures import DAEMON, PythonProgram, find_processes
from redstart.testing.contracts.isolation import IsolationContract
from redstart.testing.contracts.limits import LimitsContract
from redstart.testing.contracts.sandbox import SandboxContract
from redstart.testing.contracts.sandbox_session import SessionContract
from redstart.testing.sandbox import FolderWorkspaces


@pytest.fixture(scope="module")
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        probe(tmp_path_factory.mktemp("probe"))
    except SandboxUnavailable as error:
        pytest.skip(f"{error} {error.remedy}")


@pytest.mark.usefixtures("bubblewrap_works")
class TestBubblewrap(SandboxContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        return Bubblewrap(workspaces, scratch)

    async def test_dead_sandbox_is_detected(self, python: PythonProgram, token: str, scratch: Path) -> None:
        async def kill_from_outside() -> None:
            task = asyncio.create_task(python.sandbox.run(python.request(f"{DAEMON}time.sleep(300)  # {token}")))
            async with asyncio.timeout(60):
                while len(find_processes(token)) < 4:  # noqa: ASYNC110 (the awaited event happens in another process)
                    await asyncio.sleep(0.01)
            monitor = min(pid for pid in find_processes(token) if Path(f"/proc/{pid}/comm").read_text() == "bwrap\n")
            os.kill(monitor, signal.SIGKILL)
            async with asyncio.timeout(30):
                await task

        with pytest.raises(SandboxDied):
            await kill_from_outside()
        assert list(scratch.iterdir()) == []

    def test_no_mount_or_cgroup_remains(self, python: PythonProgram) -> None:
        for code in ("pass", "import os; os.abort()", "import time; time.sleep(60)"):
            python(code, limits=SandboxLimits(wall=3))
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        assert [line for line in mounts if line.split(" - ")[1].split()[1] == "redstart"] == []
        tree = find_own_tree()
        folders = set(tree.folders.values()) if tree else set[Path]()
        assert [path for folder in folders for path in folder.glob(f"{PREFIX}{mark()}-*")] == []

    def test_missing_capabilities_are_reported(self, sandbox: Sandbox) -> None:
        assert isinstance(sandbox, Bubblewrap)
        assert (SandboxLack.memory_limit in sandbox.lacks) == (find_own_tree() is None)


@pytest.mark.usefixtures("bubblewrap_works")
class TestBubblewrapIsolation(IsolationContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        return Bubblewrap(workspaces, scratch)


@pytest.mark.usefixtures("bubblewrap_works")
class TestBubblewrapSession(SessionContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        return Bubblewrap(workspaces, scratch)

    @pytest.fixture(autouse=True)
    def started(self, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
        """Check that every test of the contract used a warm sandbox."""
        sessions: list[WarmSession] = []
        close = WarmSession.close

        async def close_and_record(session: WarmSession) -> None:
            sessions.append(session)
            await close(session)

        monkeypatch.setattr(WarmSession, "close", close_and_record)
        yield
        assert sum(warm_session.warm_runs for warm_session in sessions) > 0


@pytest.mark.soak
@pytest.mark.usefixtures("bubblewrap_works")
class TestBubblewrapWithLess(LimitsContract):
    """The limits on a kernel that offers neither cgroups nor mounts."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> Sandbox:
        monkeypatch.setattr(bwrap, "find_own_tree", lambda: None)
        monkeypatch.setattr(bwrap, "get_own_rights", ProcessRights)
        return Bubblewrap(workspaces, scratch)


class TestProcess(SandboxContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        return Process(workspaces, scratch)
