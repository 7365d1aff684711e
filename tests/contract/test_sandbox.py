"""Every sandbox behaves alike; those that isolate also isolate."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.core.errors import SandboxUnavailable
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.sandbox.process import Process
from redstart.testing.contracts.isolation import IsolationContract
from redstart.testing.contracts.sandbox import SandboxContract
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


@pytest.mark.usefixtures("bubblewrap_works")
class TestBubblewrapIsolation(IsolationContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        return Bubblewrap(workspaces, scratch)


class TestProcess(SandboxContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path) -> Sandbox:
        return Process(workspaces, scratch)
