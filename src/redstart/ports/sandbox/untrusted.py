"""Reading on the host what a sandboxed command has left: only plain files, and no way out of the folder."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence

BENEATH, NO_SYMLINKS, NO_MAGICLINKS = 0x08, 0x04, 0x02
OPENAT2 = 437
"""The number of the system call, the same on every machine."""
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_untrusted(folder: int, parts: Sequence[str], largest: int) -> bytes | None:
    """A file below an open folder, or nothing where there is no regular file of one name and of at most that size.

    No link on the way is followed: it could lead to the host. A file with a second name could be another's.
    """
    with contextlib.suppress(OSError), os.fdopen(opened_beneath(folder, parts), "rb") as file:
        about = os.fstat(file.fileno())
        if stat.S_ISREG(about.st_mode) and about.st_nlink == 1 and about.st_size <= largest:
            content = file.read(largest + 1)  # it may grow meanwhile
            return content if len(content) <= largest else None
    return None


def opened_beneath(folder: int, parts: Sequence[str]) -> int:
    """A descriptor of what is below an open folder, reached without any link. Raises `OSError`.

    The kernel is asked to see to that in one step, so that nobody can put a link in the way meanwhile. An old kernel,
    which cannot, is led folder by folder.
    """
    try:
        return _openat2(folder, "/".join(parts))
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
    return _step_by_step(folder, parts)


def _openat2(folder: int, path: str) -> int:
    how = struct.pack("=QQQ", FLAGS, 0, BENEATH | NO_SYMLINKS | NO_MAGICLINKS)
    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (AttributeError, OSError):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    syscall.restype = ctypes.c_long
    fd = syscall(
        ctypes.c_long(OPENAT2), ctypes.c_int(folder), ctypes.c_char_p(os.fsencode(path)), how, ctypes.c_size_t(len(how))
    )
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd


def _step_by_step(folder: int, parts: Sequence[str]) -> int:
    if any(part in ("", ".", "..") or "/" in part for part in parts):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    at = os.dup(folder)
    try:
        for part in parts[:-1]:
            inner = os.open(part, FLAGS | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(parts[-1], FLAGS, dir_fd=at)
    finally:
        os.close(at)
