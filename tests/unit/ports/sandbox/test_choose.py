"""Which sandbox is chosen, and what happens to one that leaks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.ports.sandbox import choose as choosing
from redstart.ports.sandbox.choose import SandboxChoice, choose, order
from redstart.ports.sandbox.docker.sandbox import ContainerOptions
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.prove import Leaks, in_thread, prove
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


def nowhere(tmp_path: Path) -> ContainerOptions:
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
def test_the_order(platform: str, docker: bool, tried: tuple[str, ...]) -> None:
    assert order(platform, SandboxChoice(docker=(lambda: ContainerOptions("s", "i")) if docker else None)) == tried


@pytest.mark.usefixtures("no_bubblewrap")
def test_where_none_works_each_says_why(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    wanted = SandboxChoice(docker=lambda: nowhere(tmp_path))
    with pytest.raises(SandboxUnavailable, match="no bubblewrap") as raised:
        choose(workspaces, tmp_path, wanted=wanted)
    assert "none.sock" in str(raised.value)
    assert all(each in raised.value.remedy for each in ("install it", "DOCKER_HOST", "--unsafe-no-sandbox"))
    assert isinstance(choose(workspaces, tmp_path, wanted=wanted, unsafe=True), Process)


@pytest.mark.parametrize("unsafe", [True, False])
def test_one_that_was_named_is_not_replaced(workspaces: FolderWorkspaces, tmp_path: Path, unsafe: bool) -> None:
    with pytest.raises(SandboxUnavailable, match=r"none\.sock"):
        choose(workspaces, tmp_path, unsafe=unsafe, wanted=SandboxChoice("docker", lambda: nowhere(tmp_path)))


def test_a_plain_process_only_with_leave(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        choose(workspaces, tmp_path, wanted=SandboxChoice("process"))
    assert "--unsafe-no-sandbox" in raised.value.remedy
    assert isinstance(choose(workspaces, tmp_path, unsafe=True, wanted=SandboxChoice("process")), Process)


@pytest.mark.slow
def test_a_plain_process_is_seen_to_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(Leaks) as raised:
        prove(Process, tmp_path)
    for sign in ("could be read", "be written outside", "a port", "a socket of this machine", "be signalled"):
        assert sign in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Completed(exit_code=1, cause=ExitCause.failed, output="it broke"), "it broke"),
        (Completed(exit_code=0, cause=ExitCause.ok, output="silence"), "cannot run Python"),
    ],
)
def test_a_sandbox_in_which_nothing_runs_proves_nothing(tmp_path: Path, answer: Completed, words: str) -> None:
    def always(execution: Execution) -> Completed:
        return answer

    with pytest.raises(SandboxUnavailable, match=words):
        prove(lambda *_: FakeSandbox(always), tmp_path)


def test_work_can_be_done_where_a_loop_runs_already() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    async def outer() -> int:
        return in_thread(answer())

    assert asyncio.run(outer()) == 42

    async def fail() -> None:
        raise ConfigError("told")

    with pytest.raises(ConfigError, match="told"):
        in_thread(fail())
