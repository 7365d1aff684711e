"""Which output the launcher keeps, what it limits and what it kills."""

from __future__ import annotations

import os
import sys

import pytest

from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox.launch import build_limited_command, kill_group, launch

pytestmark = pytest.mark.slow

LIMITS = SandboxLimits(wall=60)


async def test_group_is_killed_after_a_normal_exit_too() -> None:
    killed: list[int] = []
    end = await launch(["/bin/echo", "hello"], variables={}, limits=LIMITS, kill=killed.append)
    assert (end.returncode, end.output) == (0, b"hello\n")
    assert len(killed) == 1


async def test_killing_the_group_of_a_dead_process_is_not_an_error() -> None:
    killed: list[int] = []
    await launch(["/bin/true"], variables={}, limits=LIMITS, kill=killed.append)
    kill_group(killed[0])
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)


async def test_launch_works_without_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    end = await launch(["/bin/sh", "-c", "echo hello; exit 3"], variables={}, limits=LIMITS)
    timed_out_end = await launch(["/bin/sleep", "60"], variables={}, limits=SandboxLimits(wall=0.2))
    assert (end.returncode, end.output, end.timed_out) == (3, b"hello\n", False)
    assert (timed_out_end.returncode, timed_out_end.timed_out) == (-9, True)


async def test_failed_launch_leaves_no_file_open() -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 (only names are compared)
    with pytest.raises(FileNotFoundError):
        await launch(["/no/such/program"], variables={}, limits=LIMITS)
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("stay", [False, True])
async def test_program_sees_its_limits(stay: bool) -> None:
    code = "import resource as r; names = ('CORE', 'CPU', 'FSIZE', 'DATA')"
    code += "; print([r.getrlimit(getattr(r, 'RLIMIT_' + name)) for name in names])"
    limits = SandboxLimits(wall=60, cpu=7, file_size=1 << 20, memory=1 << 30)
    argv = build_limited_command(limits, "/", [sys.executable, "-c", code], keep_shell=stay)
    end = await launch(argv, variables={}, limits=limits)
    assert end.output.decode() == f"{[(0, 0), (7, 8), (1 << 20, 1 << 20), (1 << 30, 1 << 30)]}\n"


async def test_stricter_host_limit_is_kept() -> None:
    inner_argv = build_limited_command(
        SandboxLimits(memory=1 << 30, cpu=600), "/", ["/bin/sh", "-c", "ulimit -d; ulimit -t"]
    )
    argv = ["/bin/sh", "-c", 'ulimit -d 500000; ulimit -t 50; exec "$@"', "sh", *inner_argv]
    end = await launch(argv, variables={}, limits=LIMITS)
    assert (end.returncode, end.output) == (0, b"500000\n50\n")


async def test_wrapping_shell_prints_nothing_and_is_not_the_program() -> None:
    for argv, code in ((["/bin/sh", "-c", "kill -SEGV $$"], 139), (["exit", "5"], 127)):
        end = await launch(build_limited_command(LIMITS, "/", argv, keep_shell=True), variables={}, limits=LIMITS)
        assert end.returncode == code
        assert b"fault" not in end.output
