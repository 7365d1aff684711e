"""What the hostile programs in Python have in common. It is laid beside each of them."""

import contextlib
import ctypes
import os
import platform
import time

NUMBERS = {
    "x86_64": {
        **{"clone": 56, "ptrace": 101, "syslog": 103, "capset": 126, "pivot_root": 155, "acct": 163, "mount": 165},
        **{"umount2": 166, "swapon": 167, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175},
        **{"delete_module": 176, "kexec_load": 246, "add_key": 248, "keyctl": 250, "unshare": 272},
        **{"perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304},
        **{"setns": 308, "process_vm_readv": 310, "finit_module": 313, "bpf": 321, "userfaultfd": 323},
    },
    "aarch64": {
        **{"umount2": 39, "mount": 40, "pivot_root": 41, "acct": 89, "capset": 91, "unshare": 97, "kexec_load": 104},
        **{"init_module": 105, "delete_module": 106, "syslog": 116, "ptrace": 117, "reboot": 142, "add_key": 217},
        **{"keyctl": 219, "clone": 220, "swapon": 224, "perf_event_open": 241, "fanotify_init": 262},
        **{"name_to_handle_at": 264, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270},
        **{"finit_module": 273, "bpf": 280, "userfaultfd": 282},
    },
}[platform.machine()]
NEWER = {"io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "pidfd_open": 434, "pidfd_getfd": 438}
"""Calls that have the same number everywhere."""

libc = ctypes.CDLL(None, use_errno=True)


def syscall(name, *arguments):
    """Makes a call of the kernel by its name. Raises `OSError` where the kernel refuses, or has no such call."""
    number = NEWER.get(name) or NUMBERS.get(name, -1)
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(number), *given)
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def reached():
    """Says that the attack got what it wanted, where the host has no way to see it."""
    with contextlib.suppress(OSError):
        os.write(1, f"REACHED {os.environ['ATTACK_TOKEN']}\n".encode())


def hold():
    """Keeps what was got for long enough that the host sees it."""
    time.sleep(1.2)
