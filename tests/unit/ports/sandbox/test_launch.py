"""Which output the launcher keeps, what it limits and what it kills."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox.launch import ClippedStream, kill_group, launch, limited

pytestmark = pytest.mark.slow

LIMITS = SandboxLimits(wall=60)


@given(chunks=st.lists(st.binary(max_size=30), max_size=20), limit=st.integers(min_value=0, max_value=100))
def test_head_and_tail_are_kept_however_the_stream_is_cut(chunks: list[bytes], limit: int) -> None:
    kept = ClippedStream(limit)
    for chunk in chunks:
        kept.add(chunk)
    stream = b"".join(chunks)
    half = limit // 2
    if len(stream) <= limit:
        assert (kept.joined(), kept.left_out) == (stream, 0)
    else:
        left_out = len(stream) - limit
        tail = stream[half + left_out :]
        assert kept.joined() == stream[:half] + f"\n[... {left_out} bytes left out ...]\n".encode() + tail


def test_the_kill_comes_after_a_normal_exit_too() -> None:
    killed: list[int] = []
    ended = asyncio.run(launch(["/bin/echo", "hello"], variables={}, limits=LIMITS, kill=killed.append))
    assert (ended.returncode, ended.output) == (0, b"hello\n")
    assert len(killed) == 1


def test_the_group_of_a_dead_process_is_no_error() -> None:
    killed: list[int] = []
    asyncio.run(launch(["/bin/true"], variables={}, limits=LIMITS, kill=killed.append))
    kill_group(killed[0])
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)


def test_a_system_without_process_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    done = asyncio.run(launch(["/bin/sh", "-c", "echo hello; exit 3"], variables={}, limits=LIMITS))
    late = asyncio.run(launch(["/bin/sleep", "60"], variables={}, limits=SandboxLimits(wall=0.2)))
    assert (done.returncode, done.output, done.timed_out) == (3, b"hello\n", False)
    assert (late.returncode, late.timed_out) == (-9, True)


def test_what_cannot_be_started_leaves_nothing_open() -> None:
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 (only names are compared)
    with pytest.raises(FileNotFoundError):
        asyncio.run(launch(["/no/such/program"], variables={}, limits=LIMITS))
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("stay", [False, True])
def test_limits_as_the_program_sees_them(stay: bool) -> None:
    code = "import resource as r; names = ('CORE', 'CPU', 'FSIZE', 'DATA')"
    code += "; print([r.getrlimit(getattr(r, 'RLIMIT_' + name)) for name in names])"
    limits = SandboxLimits(wall=60, cpu=7, file_size=1 << 20, memory=1 << 30)
    argv = limited(limits, "/", [sys.executable, "-c", code], stay=stay)
    ended = asyncio.run(launch(argv, variables={}, limits=limits))
    assert ended.output.decode() == f"{[(0, 0), (7, 8), (1 << 20, 1 << 20), (1 << 30, 1 << 30)]}\n"


def test_a_limit_above_the_hosts_own_leaves_the_hosts() -> None:
    inner = limited(SandboxLimits(memory=1 << 30, cpu=600), "/", ["/bin/sh", "-c", "ulimit -d; ulimit -t"])
    argv = ["/bin/sh", "-c", 'ulimit -d 500000; ulimit -t 50; exec "$@"', "sh", *inner]
    ended = asyncio.run(launch(argv, variables={}, limits=LIMITS))
    assert (ended.returncode, ended.output) == (0, b"500000\n50\n")


def test_a_shell_that_stays_says_nothing_and_is_not_the_program() -> None:
    for argv, code in ((["/bin/sh", "-c", "kill -SEGV $$"], 139), (["exit", "5"], 127)):
        ended = asyncio.run(launch(limited(LIMITS, "/", argv, stay=True), variables={}, limits=LIMITS))
        assert ended.returncode == code
        assert b"fault" not in ended.output
