"""The system calls that a container may not make.

Docker's own profile leaves AF_VSOCK open, which no network namespace confines, and in some versions io_uring too. A
given profile replaces Docker's, so this one names everything that bubblewrap's filter does.
"""

from __future__ import annotations

import functools
import json

from redstart.ports.sandbox.seccomp import (
    ARM64,
    BLOCK_DEVICE,
    CHARACTER_DEVICE,
    INET,
    INET6,
    KIND,
    NETLINK,
    NEW_NAMESPACES,
    TERMINAL_INPUT,
    TERMINAL_LINUX,
    UNIX,
    X86_64,
)

EPERM, ENOSYS = 1, 38
HIGHEST_FAMILY = 45
EXTRA_SYSCALLS = (
    "umount",
    "process_madvise",
    "stime",
    "clock_settime64",
    "clock_adjtime64",
    "vm86",
    "vm86old",
    "ustat",
    "sysfs",
)
"""Calls that only some machines have, or that need no filter inside a fresh user namespace."""


@functools.cache
def build_profile() -> str:
    """Return the profile as JSON. The library that loads it refuses the calls of a foreign architecture."""
    names = tuple(sorted({*X86_64, *ARM64, *EXTRA_SYSCALLS}))
    families = [family for family in range(HIGHEST_FAMILY + 1) if family not in (UNIX, INET, INET6, NETLINK)]
    rules: list[dict[str, object]] = [
        _deny(names),
        _deny(("clone3",), code=ENOSYS),  # its flags are in memory, hidden from a filter; programs then use `clone`
        *(_deny(("socket", "socketpair"), _match_equal(0, family)) for family in families),
        _deny(("socket", "socketpair"), {"index": 0, "value": HIGHEST_FAMILY, "op": "SCMP_CMP_GT"}),
        *(_deny(("clone",), _match_masked(0, flag, flag)) for flag in _split_flags(NEW_NAMESPACES)),
        *(_deny(("mknod",), _match_masked(1, KIND, kind)) for kind in (CHARACTER_DEVICE, BLOCK_DEVICE)),
        *(_deny(("mknodat",), _match_masked(2, KIND, kind)) for kind in (CHARACTER_DEVICE, BLOCK_DEVICE)),
        *(_deny(("ioctl",), _match_masked(1, 0xFFFFFFFF, request)) for request in (TERMINAL_INPUT, TERMINAL_LINUX)),
    ]
    machines = ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "architectures": machines, "syscalls": rules})


def _deny(names: tuple[str, ...], *arguments: dict[str, object], code: int = EPERM) -> dict[str, object]:
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": code, "args": list(arguments)}


def _match_equal(index: int, value: int) -> dict[str, object]:
    return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}


def _match_masked(index: int, mask: int, value: int) -> dict[str, object]:
    """Docker's field names are misleading: `value` is the mask and `valueTwo` the value to compare."""
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}


def _split_flags(mask: int) -> list[int]:
    return [1 << bit for bit in range(32) if mask & (1 << bit)]
