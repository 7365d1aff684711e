"""The filter's decisions, in a small model of the kernel's filter machine and in the kernel itself."""

from __future__ import annotations

import errno
import platform
import struct
import subprocess
import sys

import pytest

from redstart.ports.sandbox.seccomp import (
    ALLOW,
    AND,
    ERRNO,
    JUMP_ANY_BIT,
    JUMP_AT_LEAST,
    JUMP_EQUAL,
    KILL,
    LOAD,
    MACHINES,
    RETURN,
    Instruction,
    assemble,
    build_filter,
)

REFUSED, MISSING, NO_FAMILY = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO | errno.EAFNOSUPPORT


def run_filter(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Run the filter on a call; return its answer."""
    syscalls = MACHINES[machine]
    padded_arguments = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack(
        "<IIQ6Q", number, syscalls.architecture if architecture is None else architecture, 0, *padded_arguments
    )
    code = build_filter(machine)
    assert code is not None
    place = accumulator = 0
    while True:
        kind, jump_true, jump_false, value = struct.unpack_from("<HBBI", code, place * 8)
        place += 1
        if kind == LOAD:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif kind == AND:
            accumulator &= value
        elif kind == RETURN:
            return value
        else:
            tests = {
                JUMP_EQUAL: accumulator == value,
                JUMP_AT_LEAST: accumulator >= value,
                JUMP_ANY_BIT: bool(accumulator & value),
            }
            place += jump_true if tests[kind] else jump_false


@pytest.mark.parametrize("machine", list(MACHINES))
def test_ordinary_calls_are_allowed(machine: str) -> None:
    refused = {*MACHINES[machine].refused.values(), 435}
    ordinary_calls = {machine_call for machine_call in range(425) if machine_call not in refused}
    syscalls = MACHINES[machine]
    for number in ordinary_calls - {syscalls.socket, syscalls.socketpair}:
        assert run_filter(machine, number) == ALLOW


@pytest.mark.parametrize("machine", list(MACHINES))
def test_dangerous_calls_are_refused(machine: str) -> None:
    for number in MACHINES[machine].refused.values():
        assert run_filter(machine, number) == REFUSED
    assert run_filter(machine, 435) == MISSING


@pytest.mark.parametrize("machine", list(MACHINES))
def test_foreign_architecture_is_killed(machine: str) -> None:
    assert run_filter(machine, 0, architecture=0x40000003) == KILL


def test_x32_calls_are_reported_as_missing() -> None:
    assert run_filter("x86_64", 0x40000000 + 165) == MISSING


@pytest.mark.parametrize("machine", list(MACHINES))
def test_calls_are_filtered_by_argument(machine: str) -> None:
    syscalls = MACHINES[machine]
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert run_filter(machine, syscalls.clone, flag | 17) == REFUSED
    assert run_filter(machine, syscalls.clone, 0x003D0F00) == ALLOW  # the flags of a new thread
    assert run_filter(machine, syscalls.ioctl, 0, 0x5412) == run_filter(machine, syscalls.ioctl, 0, 0x541C) == REFUSED
    assert run_filter(machine, syscalls.ioctl, 0, 0xFFFFFFFF00005412) == REFUSED  # the kernel reads only the low half
    assert run_filter(machine, syscalls.ioctl, 0, 0x5413) == ALLOW
    for call in (syscalls.socket, syscalls.socketpair):
        families = [run_filter(machine, call, family) for family in (1, 2, 10, 40, 17, 38, 0)]
        assert families == [ALLOW] * 3 + [NO_FAMILY] * 4
        assert [run_filter(machine, call, 16, 3, protocol) for protocol in (0, 9, 12)] == [ALLOW, NO_FAMILY, NO_FAMILY]
    for call, place in syscalls.devices:
        padding = [0] * place
        modes = [run_filter(machine, call, *padding, mode) for mode in (0o20666, 0o60666, 0o10666, 0o644)]
        assert modes == [REFUSED, REFUSED, ALLOW, ALLOW]


def test_both_architectures_refuse_the_same_calls() -> None:
    only_intel = {"iopl", "ioperm", "modify_ldt", "uselib", "create_module"}
    assert set(MACHINES["x86_64"].refused) - set(MACHINES["aarch64"].refused) == only_intel
    assert set(MACHINES["aarch64"].refused) <= set(MACHINES["x86_64"].refused)


def test_unknown_architecture_has_no_filter() -> None:
    assert build_filter("riscv64") is None


def test_overlong_jump_is_an_error() -> None:
    instructions = [
        Instruction(JUMP_EQUAL, 1, jump_if_true="end"),
        *[Instruction(LOAD, 0)] * 256,
        Instruction(RETURN, 0, label="end"),
    ]
    with pytest.raises(ValueError, match="too far"):
        assemble(instructions)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in MACHINES, reason="no filter for this kind of processor")
def test_kernel_accepts_the_filter() -> None:
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
filtered = bytes.fromhex(sys.argv[1])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(filtered) // 8, filtered)), 0, 0) == 0, ctypes.get_errno()
print(libc.unshare(0x10000000), ctypes.get_errno())
import socket, threading
thread = threading.Thread(target=print, args=("a thread",))
thread.start()
thread.join()
try:
    socket.socket(40, socket.SOCK_STREAM)
except OSError as error:
    print(error.errno)
"""
    filter_code = build_filter()
    assert filter_code is not None
    completed = subprocess.run(
        [sys.executable, "-c", code, filter_code.hex()], capture_output=True, text=True, check=True
    )
    assert sorted(completed.stdout.splitlines()) == sorted([f"-1 {errno.EPERM}", "a thread", str(errno.EAFNOSUPPORT)])
