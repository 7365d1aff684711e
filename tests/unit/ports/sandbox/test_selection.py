"""Which sandbox is chosen, and what happens to one that leaks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.ports.sandbox import selection as choosing
from redstart.ports.sandbox.docker.sandbox import ContainerOptions
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.selection import SandboxChoice, choose, order
from redstart.ports.sandbox.self_test import Leaks, in_thread, prove
from redstart.testing.sandbox import FakeSandbox, FolderWorkspaces


@pytest.fixture
def workspaces(tmp_path: Path) -> FolderWorkspaces:
    return FolderWorkspaces(tmp_path / "snapshots")


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(scratch: Path) -> None:
        raise SandboxUnavailable("no bubblewrap", remedy="install it")

    monkeypatch.setattr(choosing, "probe", refuse)
    monkeypatch.setattr(choosing.sys, "platform", "linux")


def create_container_options(tmp_path: Path) -> ContainerOptions:
    return ContainerOptions(str(tmp_path / "none.sock"), "image")


@pytest.mark.parametrize(
    ("platform", "docker", "tried"),
    [
        ("linux", True, ("bwrap", "docker")),
        ("linux", False, ("bwrap",)),
        ("darwin", True, ("docker", "seatbelt")),
        ("darwin", False, ("seatbelt",)),
    ],
)
def test_sandboxes_are_tried_in_order(platform: str, docker: bool, tried: tuple[str, ...]) -> None:
    assert order(platform, SandboxChoice(docker=(lambda: ContainerOptions("s", "i")) if docker else None)) == tried


@pytest.mark.usefixtures("no_bubblewrap")
def test_where_none_works_each_says_why(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    choice = SandboxChoice(docker=lambda: create_container_options(tmp_path))
    with pytest.raises(SandboxUnavailable, match="no bubblewrap") as caught:
        choose(workspaces, tmp_path, choice=choice)
    assert "none.sock" in str(caught.value)
    assert all(phrase in caught.value.remedy for phrase in ("install it", "DOCKER_HOST", "--unsafe-no-sandbox"))
    assert isinstance(choose(workspaces, tmp_path, choice=choice, unsafe=True), Process)


@pytest.mark.parametrize("unsafe", [True, False])
def test_explicitly_chosen_sandbox_is_not_replaced(workspaces: FolderWorkspaces, tmp_path: Path, unsafe: bool) -> None:
    with pytest.raises(SandboxUnavailable, match=r"none\.sock"):
        choose(
            workspaces,
            tmp_path,
            unsafe=unsafe,
            choice=SandboxChoice("docker", lambda: create_container_options(tmp_path)),
        )


def test_plain_process_needs_permission(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(workspaces, tmp_path, choice=SandboxChoice("process"))
    assert "--unsafe-no-sandbox" in caught.value.remedy
    assert isinstance(choose(workspaces, tmp_path, unsafe=True, choice=SandboxChoice("process")), Process)


@pytest.mark.slow
def test_plain_process_fails_the_isolation_check(tmp_path: Path) -> None:
    with pytest.raises(Leaks) as caught:
        prove(Process, tmp_path)
    for phrase in ("could be read", "be written outside", "a port", "a socket of this machine", "be signalled"):
        assert phrase in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "pattern"),
    [
        (Completed(exit_code=1, cause=ExitCause.failed, output="it broke"), "it broke"),
        (Completed(exit_code=0, cause=ExitCause.ok, output="silence"), "cannot run Python"),
    ],
)
def test_sandbox_that_runs_nothing_proves_nothing(tmp_path: Path, answer: Completed, pattern: str) -> None:
    def return_answer(execution: Execution) -> Completed:
        return answer

    with pytest.raises(SandboxUnavailable, match=pattern):
        prove(lambda *_: FakeSandbox(return_answer), tmp_path)


async def test_coroutine_can_run_inside_a_running_event_loop() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    async def run_in_thread() -> int:
        return in_thread(answer())

    assert await run_in_thread() == 42

    async def fail() -> None:
        raise ConfigError("told")

    with pytest.raises(ConfigError, match="told"):
        in_thread(fail())
