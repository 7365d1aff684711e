"""What the watch measures of processes and folders, and when it ends an execution."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox import watch
from redstart.ports.sandbox.watch import ExecutionWatch, exact_memory, family, stored

MEGABYTE = 1 << 20
FAMILY = """
import os, sys
held = bytearray(os.urandom(1 << 20)) * 50
for _ in range(3):
    if os.fork() == 0:
        break
print('up', flush=True)
while {busy}: pass
sys.stdin.read()
"""


@contextmanager
def running(*, busy: bool = False) -> Generator[int]:
    argv = [sys.executable, "-c", FAMILY.format(busy=busy)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as top:
        try:
            assert top.stdout is not None
            for _ in range(4):
                top.stdout.readline()
            yield top.pid
        finally:
            os.killpg(top.pid, signal.SIGKILL)


def told(pid: int, **limits: float) -> ExitCause:
    watchman = ExecutionWatch(SandboxLimits.model_validate({"wall": 60, **limits}), group=None)

    async def soon() -> ExitCause:
        async with asyncio.timeout(50):
            return await watchman.watch(pid)

    return asyncio.run(soon())


@pytest.mark.slow
def test_a_family_is_added_up_and_what_it_shares_counted_once() -> None:
    with running() as top:
        used = family(top)
        assert used.processes == 4
        assert used.memory > 200 * MEGABYTE
        assert 50 * MEGABYTE < exact_memory(top) < 150 * MEGABYTE


NAMELESS = """
import mmap, os, sys
held = [os.memfd_create("held") for _ in range(2)]
for file in held:
    os.write(file, bytes(60 << 20))
mapped = mmap.mmap(held[0], 60 << 20)
sum(mapped[at] for at in range(0, 60 << 20, 4096))
print("up", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_files_in_memory_that_have_no_name_are_counted_once() -> None:
    with subprocess.Popen([sys.executable, "-c", NAMELESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert family(holder.pid).memory > 180 * MEGABYTE, "one file is mapped, so it counts in the process size too"
        assert 120 * MEGABYTE < exact_memory(holder.pid) < 150 * MEGABYTE
        assert told(holder.pid, memory=110 * MEGABYTE) is ExitCause.memory
        holder.communicate()


BY_THREAD = """
import subprocess, sys, threading
child = []
thread = threading.Thread(target=lambda: child.append(subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)))
stays = threading.Event()
holder = threading.Thread(target=lambda: (thread.run(), print("up", flush=True), stays.wait()))
holder.start()
sys.stdin.read()
child[0].communicate()
stays.set()
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernel_lists", [True, False])
def test_children_of_every_thread_belong_to_the_family(monkeypatch: pytest.MonkeyPatch, kernel_lists: bool) -> None:
    monkeypatch.setattr(watch, "_kernel_lists_children", lambda: kernel_lists)
    with subprocess.Popen([sys.executable, "-c", BY_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as top:
        assert top.stdout is not None
        top.stdout.readline()
        assert family(top.pid).processes == 2
        top.communicate()


@pytest.mark.slow
def test_a_process_that_is_gone_uses_nothing() -> None:
    with subprocess.Popen(["/bin/true"]) as gone:
        gone.wait()
    assert (family(gone.pid).processes, exact_memory(gone.pid)) == (0, 0)


@pytest.mark.slow
def test_too_many_processes() -> None:
    with running() as top:
        assert told(top, processes=0) is ExitCause.processes


@pytest.mark.slow
def test_too_much_memory() -> None:
    with running() as top:
        assert told(top, memory=40 * MEGABYTE) is ExitCause.memory


@pytest.mark.soak
def test_too_much_processor_time() -> None:
    with running(busy=True) as top:
        assert told(top, cpu=1) is ExitCause.cpu


@pytest.mark.slow
def test_shared_memory_is_no_reason() -> None:
    with running() as top:
        watchman = ExecutionWatch(SandboxLimits(memory=180 * MEGABYTE), group=None)

        async def a_while() -> None:
            async with asyncio.timeout(1):
                await watchman.watch(top)

        with pytest.raises(TimeoutError):
            asyncio.run(a_while())


def test_what_was_there_before_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(bytes(3 * MEGABYTE))
    watchman = ExecutionWatch(SandboxLimits(disk=2 * MEGABYTE, inodes=5), group=None, folders=[tmp_path])
    assert watchman.disk() is None
    (tmp_path / "some").write_bytes(bytes(MEGABYTE))
    assert watchman.disk() is None
    (tmp_path / "more").write_bytes(bytes(2 * MEGABYTE))
    assert watchman.disk() is ExitCause.disk


def test_too_many_files(tmp_path: Path) -> None:
    watchman = ExecutionWatch(SandboxLimits(inodes=5), group=None, folders=[tmp_path])
    for number in range(6):
        (tmp_path / str(number)).mkdir()
    assert watchman.disk() is ExitCause.disk


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    assert stored([tmp_path]).files == 1
    assert stored([tmp_path / "missing"]).files == 0
