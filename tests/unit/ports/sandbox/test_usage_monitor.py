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
from redstart.ports.sandbox import usage_monitor
from redstart.ports.sandbox.usage_monitor import (
    ExecutionWatch,
    measure_exact_memory,
    measure_folders,
    measure_processes,
)

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
def start_family(*, busy: bool = False) -> Generator[int]:
    argv = [sys.executable, "-c", FAMILY.format(busy=busy)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as top:
        try:
            assert top.stdout is not None
            for _ in range(4):
                top.stdout.readline()
            yield top.pid
        finally:
            os.killpg(top.pid, signal.SIGKILL)


def get_exit_cause(pid: int, **limits: float) -> ExitCause:
    watcher = ExecutionWatch(SandboxLimits.model_validate({"wall": 60, **limits}), group=None)

    async def watch_with_timeout() -> ExitCause:
        async with asyncio.timeout(50):
            return await watcher.watch(pid)

    return asyncio.run(watch_with_timeout())


@pytest.mark.slow
def test_shared_memory_of_a_process_tree_is_counted_once() -> None:
    with start_family() as top:
        used = measure_processes(top)
        assert used.processes == 4
        assert used.memory > 200 * MEGABYTE
        assert 50 * MEGABYTE < measure_exact_memory(top) < 150 * MEGABYTE


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
def test_unnamed_memory_files_are_counted_once() -> None:
    with subprocess.Popen([sys.executable, "-c", NAMELESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert measure_processes(holder.pid).memory > 180 * MEGABYTE, (
            "one file is mapped, so it counts in the process size too"
        )
        assert 120 * MEGABYTE < measure_exact_memory(holder.pid) < 150 * MEGABYTE
        assert get_exit_cause(holder.pid, memory=110 * MEGABYTE) is ExitCause.memory
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
def test_children_of_every_thread_belong_to_the_process_tree(
    monkeypatch: pytest.MonkeyPatch, kernel_lists: bool
) -> None:
    monkeypatch.setattr(usage_monitor, "_can_list_children", lambda: kernel_lists)
    with subprocess.Popen([sys.executable, "-c", BY_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as top:
        assert top.stdout is not None
        top.stdout.readline()
        assert measure_processes(top.pid).processes == 2
        top.communicate()


@pytest.mark.slow
def test_ended_process_uses_nothing() -> None:
    with subprocess.Popen(["/bin/true"]) as ended_process:
        ended_process.wait()
    assert (measure_processes(ended_process.pid).processes, measure_exact_memory(ended_process.pid)) == (0, 0)


@pytest.mark.slow
def test_process_limit_is_enforced() -> None:
    with start_family() as top:
        assert get_exit_cause(top, processes=0) is ExitCause.processes


@pytest.mark.slow
def test_memory_limit_is_enforced() -> None:
    with start_family() as top:
        assert get_exit_cause(top, memory=40 * MEGABYTE) is ExitCause.memory


@pytest.mark.soak
def test_processor_time_limit_is_enforced() -> None:
    with start_family(busy=True) as top:
        assert get_exit_cause(top, cpu=1) is ExitCause.cpu


@pytest.mark.slow
def test_shared_memory_does_not_exceed_the_limit() -> None:
    with start_family() as top:
        watcher = ExecutionWatch(SandboxLimits(memory=180 * MEGABYTE), group=None)

        async def watch_briefly() -> None:
            async with asyncio.timeout(1):
                await watcher.watch(top)

        with pytest.raises(TimeoutError):
            asyncio.run(watch_briefly())


def test_existing_files_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(bytes(3 * MEGABYTE))
    watcher = ExecutionWatch(SandboxLimits(disk=2 * MEGABYTE, inodes=5), group=None, folders=[tmp_path])
    assert watcher.check_disk() is None
    (tmp_path / "some").write_bytes(bytes(MEGABYTE))
    assert watcher.check_disk() is None
    (tmp_path / "more").write_bytes(bytes(2 * MEGABYTE))
    assert watcher.check_disk() is ExitCause.disk


def test_file_limit_is_enforced(tmp_path: Path) -> None:
    watcher = ExecutionWatch(SandboxLimits(inodes=5), group=None, folders=[tmp_path])
    for number in range(6):
        (tmp_path / str(number)).mkdir()
    assert watcher.check_disk() is ExitCause.disk


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    assert measure_folders([tmp_path]).files == 1
    assert measure_folders([tmp_path / "missing"]).files == 0
