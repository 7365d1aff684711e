"""The system calls that a sandboxed program may not make, as a filter for the kernel.

The filter is classic BPF, assembled here byte by byte, so that no library is needed. It closes what namespaces leave
open: kernel interfaces with a history of vulnerabilities (io_uring, bpf, userfaultfd, keys), further namespaces, and
address families that ignore network namespaces (vsock).
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from typing import NamedTuple

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE = 0, 4
"""Offsets in the data that the filter sees of a call; the arguments follow from 16 on, 8 bytes each, low half first."""
X32 = 0x40000000
NEW_NAMESPACES = 0x7E020000
"""Flags of `clone`: every CLONE_NEW flag."""
TERMINAL_INPUT, TERMINAL_LINUX = 0x5412, 0x541C
"""The `ioctl`s that type into a terminal as if the user did."""
UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
CHARACTER_DEVICE, BLOCK_DEVICE, KIND = 0o020000, 0o060000, 0o170000

# Numbers from 424 on are the same on every machine.
COMMON_SYSCALLS = {
    "pidfd_getfd": 438,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "set_mempolicy_home_node": 450,
    "open_tree_attr": 467,
}
X86_64 = COMMON_SYSCALLS | {
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "create_module": 174,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "nfsservctl": 180,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "migrate_pages": 256,
    "unshare": 272,
    "move_pages": 279,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
ARM64 = COMMON_SYSCALLS | {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "nfsservctl": 42,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}


class Machine(NamedTuple):
    """What differs between kinds of processors."""

    architecture: int
    refused: dict[str, int]
    clone: int
    ioctl: int
    socket: int
    socketpair: int
    devices: tuple[tuple[int, int], ...]
    """The calls that make a device node, each with the index of its mode argument."""
    clone3: int = 435
    has_x32: bool = False


MACHINES = {
    "x86_64": Machine(0xC000003E, X86_64, 56, 16, 41, 53, ((133, 1), (259, 2)), has_x32=True),
    "aarch64": Machine(0xC00000B7, ARM64, 220, 29, 198, 199, ((33, 2),)),
}


class Instruction(NamedTuple):
    code: int
    value: int
    jump_if_true: str = ""
    """For a jump: the label to jump to if it holds; empty for the next instruction."""
    jump_if_false: str = ""
    label: str = ""


@functools.cache
def build_filter(machine: str = "") -> bytes | None:
    """Return the filter for a machine as named by `uname`, by default this one; None for an unknown machine.

    A call of a foreign architecture kills the program. Other refused calls fail with an error: `ENOSYS` if the C
    library then uses an older call, `EAFNOSUPPORT` for sockets, `EPERM` for the rest.
    """
    details = MACHINES.get(machine or platform.machine())
    return assemble(build_instructions(details)) if details else None


def build_instructions(machine: Machine) -> list[Instruction]:
    return [
        Instruction(LOAD, ARCHITECTURE),
        Instruction(JUMP_EQUAL, machine.architecture, jump_if_false="kill"),
        Instruction(LOAD, NUMBER),
        *((Instruction(JUMP_AT_LEAST, X32, jump_if_true="missing"),) if machine.has_x32 else ()),
        Instruction(JUMP_EQUAL, machine.clone3, jump_if_true="missing"),
        *(Instruction(JUMP_EQUAL, number, jump_if_true="refuse") for number in machine.refused.values()),
        *_test_argument(machine.clone, 0, Instruction(JUMP_ANY_BIT, NEW_NAMESPACES, "refuse", "allow")),
        *_test_argument(
            machine.ioctl,
            1,
            Instruction(JUMP_EQUAL, TERMINAL_INPUT, "refuse"),
            Instruction(JUMP_EQUAL, TERMINAL_LINUX, "refuse", "allow"),
        ),
        *(
            instruction
            for number, place in machine.devices
            for instruction in _test_argument(
                number,
                place,
                Instruction(AND, KIND),
                Instruction(JUMP_EQUAL, CHARACTER_DEVICE, "refuse"),
                Instruction(JUMP_EQUAL, BLOCK_DEVICE, "refuse", "allow"),
            )
        ),
        *(instruction for number in (machine.socket, machine.socketpair) for instruction in _test_families(number)),
        Instruction(RETURN, ALLOW, label="allow"),
        Instruction(RETURN, ERRNO | errno.EPERM, label="refuse"),
        Instruction(RETURN, ERRNO | errno.ENOSYS, label="missing"),
        Instruction(RETURN, ERRNO | errno.EAFNOSUPPORT, label="no_family"),
        Instruction(RETURN, KILL, label="kill"),
    ]


def _test_argument(number: int, place: int, *tests: Instruction) -> list[Instruction]:
    """Test the low half of one argument of one call; the last test decides."""
    end_label = f"after {number}"
    head = [Instruction(JUMP_EQUAL, number, jump_if_false=end_label), Instruction(LOAD, 16 + 8 * place)]
    return [*head, *tests, Instruction(LOAD, NUMBER, label=end_label)]


def _test_families(number: int) -> list[Instruction]:
    """Allow only one protocol of netlink: the one that lists addresses, which every name lookup uses."""
    return _test_argument(
        number,
        0,
        *(Instruction(JUMP_EQUAL, family, "allow") for family in (UNIX, INET, INET6)),
        Instruction(JUMP_EQUAL, NETLINK, jump_if_false="no_family"),
        Instruction(LOAD, 16 + 8 * 2),
        Instruction(JUMP_EQUAL, 0, "allow", "no_family"),
    )


def assemble(code: list[Instruction]) -> bytes:
    """Encode the instructions for the kernel. Raises `ValueError` if a jump is longer than 255."""
    places = {instruction.label: place for place, instruction in enumerate(code) if instruction.label}
    encoded = b""
    for place, instruction in enumerate(code):
        then, otherwise = (
            places[name] - place - 1 if name else 0 for name in (instruction.jump_if_true, instruction.jump_if_false)
        )
        if not 0 <= then <= 255 or not 0 <= otherwise <= 255:
            raise ValueError(f"a jump from {place} is too far")
        encoded += struct.pack("<HBBI", instruction.code, then, otherwise, instruction.value)
    return encoded
