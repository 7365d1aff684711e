"""The gate before the command, and what stays open of a sandbox beyond its end."""

from __future__ import annotations

import asyncio
import os
import select

import pytest

from redstart.ports.sandbox.pipes import BubblewrapPipes


def is_open(wires: BubblewrapPipes) -> bool:
    return bool(select.select([wires.gate], [], [], 0)[0])


async def test_gate_opens_once_the_sandbox_is_set_up() -> None:
    async def send_status_in_pieces(wires: BubblewrapPipes) -> None:
        admitted = asyncio.create_task(wires.admit(os.getpid(), staged=False))
        for piece in (b'{ "child-pid": 12', b"34"):
            os.write(wires.status, piece)
            await asyncio.sleep(0)
            assert not is_open(wires)
        os.write(wires.status, b" }\n")
        async with asyncio.timeout(30):
            await admitted

    with BubblewrapPipes() as wires:
        await send_status_in_pieces(wires)
        assert is_open(wires)
        assert wires.has_begun
        assert wires.output_fd is None
        assert not wires.disk_full


async def test_sandbox_that_dies_early_is_not_an_error() -> None:
    with BubblewrapPipes() as wires:
        os.write(wires.status, b'{ "child-pid": 1 }\n')
        await wires.admit(0, staged=True)
        assert wires.output_fd is None
        assert is_open(wires)


def test_fed_data_can_be_read_to_the_end() -> None:
    with BubblewrapPipes() as wires:
        fd = wires.feed(b"text")
        assert (os.read(fd, 100), os.read(fd, 100)) == (b"text", b"")


def test_no_file_descriptor_stays_open() -> None:
    with BubblewrapPipes() as wires:
        fds = [*wires.fds, wires.feed(b"x")]
    for fd in fds:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(fd)
