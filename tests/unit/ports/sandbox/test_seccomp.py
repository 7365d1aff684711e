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
    assembled,
    program,
)

REFUSED, MISSING, NO_FAMILY = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, ERRNO | errno.EAFNOSUPPORT


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Run the filter on a call; return its answer."""
    known = MACHINES[machine]
    padded = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack("<IIQ6Q", number, known.architecture if architecture is None else architecture, 0, *padded)
    code = program(machine)
    assert code is not None
    place = held = 0
    while True:
        kind, then, otherwise, value = struct.unpack_from("<HBBI", code, place * 8)
        place += 1
        if kind == LOAD:
            held = struct.unpack_from("<I", data, value)[0]
        elif kind == AND:
            held &= value
        elif kind == RETURN:
            return value
        else:
            tests = {JUMP_EQUAL: held == value, JUMP_AT_LEAST: held >= value, JUMP_ANY_BIT: bool(held & value)}
            place += then if tests[kind] else otherwise


@pytest.mark.parametrize("machine", list(MACHINES))
def test_ordinary_calls_are_allowed(machine: str) -> None:
    refused = {*MACHINES[machine].refused.values(), 435}
    tested = {machine_call for machine_call in range(425) if machine_call not in refused}
    known = MACHINES[machine]
    for number in tested - {known.socket, known.socketpair}:
        assert verdict(machine, number) == ALLOW


@pytest.mark.parametrize("machine", list(MACHINES))
def test_refused_calls(machine: str) -> None:
    for number in MACHINES[machine].refused.values():
        assert verdict(machine, number) == REFUSED
    assert verdict(machine, 435) == MISSING


@pytest.mark.parametrize("machine", list(MACHINES))
def test_another_architecture_is_killed(machine: str) -> None:
    assert verdict(machine, 0, architecture=0x40000003) == KILL


def test_the_other_table_of_numbers_is_missing() -> None:
    assert verdict("x86_64", 0x40000000 + 165) == MISSING


@pytest.mark.parametrize("machine", list(MACHINES))
def test_calls_that_depend_on_an_argument(machine: str) -> None:
    known = MACHINES[machine]
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(machine, known.clone, flag | 17) == REFUSED
    assert verdict(machine, known.clone, 0x003D0F00) == ALLOW  # the flags of a new thread
    assert verdict(machine, known.ioctl, 0, 0x5412) == verdict(machine, known.ioctl, 0, 0x541C) == REFUSED
    assert verdict(machine, known.ioctl, 0, 0xFFFFFFFF00005412) == REFUSED  # the kernel reads only the low half
    assert verdict(machine, known.ioctl, 0, 0x5413) == ALLOW
    for call in (known.socket, known.socketpair):
        families = [verdict(machine, call, family) for family in (1, 2, 10, 40, 17, 38, 0)]
        assert families == [ALLOW] * 3 + [NO_FAMILY] * 4
        assert [verdict(machine, call, 16, 3, protocol) for protocol in (0, 9, 12)] == [ALLOW, NO_FAMILY, NO_FAMILY]
    for call, place in known.devices:
        before = [0] * place
        modes = [verdict(machine, call, *before, mode) for mode in (0o20666, 0o60666, 0o10666, 0o644)]
        assert modes == [REFUSED, REFUSED, ALLOW, ALLOW]


def test_both_machines_refuse_alike() -> None:
    only_intel = {"iopl", "ioperm", "modify_ldt", "uselib", "create_module"}
    assert set(MACHINES["x86_64"].refused) - set(MACHINES["aarch64"].refused) == only_intel
    assert set(MACHINES["aarch64"].refused) <= set(MACHINES["x86_64"].refused)


def test_an_unknown_machine_has_no_filter() -> None:
    assert program("riscv64") is None


def test_a_jump_too_far_is_an_error() -> None:
    far = [Instruction(JUMP_EQUAL, 1, then="end"), *[Instruction(LOAD, 0)] * 256, Instruction(RETURN, 0, label="end")]
    with pytest.raises(ValueError, match="too far"):
        assembled(far)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in MACHINES, reason="no filter for this kind of processor")
def test_the_kernel_takes_it() -> None:
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
    filtered = program()
    assert filtered is not None
    ran = subprocess.run([sys.executable, "-c", code, filtered.hex()], capture_output=True, text=True, check=True)
    assert sorted(ran.stdout.splitlines()) == sorted([f"-1 {errno.EPERM}", "a thread", str(errno.EAFNOSUPPORT)])
