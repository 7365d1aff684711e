"""Why an execution ended, told from its exit code and its last words."""

from __future__ import annotations

import re
import signal

from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox.launch import Ended

LAST_WORDS = 8192
"""Bytes: a crash of Node prints a long trace after its reason."""

# Only an error that ended the program counts, so a traceback's last line as Python itself prints it. A test runner that
# lived on to report such an error of one test indents it, and has simply failed.
UNCAUGHT = r"^(?:INTERNALERROR> )?"
OUT_OF_MEMORY = re.compile(UNCAUGHT + r"(?:[\w.]*MemoryError\b|OSError: \[Errno 12\])", re.MULTILINE)
TOO_LARGE = re.compile(UNCAUGHT + r"(?:OSError: \[Errno 27\]|[\w./-]+: .*\bFile too large\b)", re.MULTILINE)
ALLOCATION_FAILED = re.compile(
    r"MemoryError|bad_alloc|out of memory|cannot allocate memory|unable to allocate|allocation (?:of .* )?failed"
    r"|failed to (?:re)?alloc",
    re.IGNORECASE,
)
CRASHES = {signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP, signal.SIGILL}


def exit_code(returncode: int) -> int:
    """The code by the convention of `Completed`, from `subprocess`'s, in which a signal is negative."""
    return 128 - returncode if returncode < 0 else returncode


def classify(ended: Ended, limits: SandboxLimits) -> ExitCause:
    """Why it ended. Exit codes of 128 + n count as signal n: a shell or a sandbox in between reports it so."""
    code = exit_code(ended.returncode)
    if ended.timed_out:
        return ExitCause.timeout
    if code == 0:
        return ExitCause.ok
    last_words = ended.output[-LAST_WORDS:].decode("utf-8", "replace")
    by = _signal(code)
    if by is None:
        if OUT_OF_MEMORY.search(last_words):
            return ExitCause.memory
        return ExitCause.file_size if TOO_LARGE.search(last_words) else ExitCause.failed
    if by == signal.SIGXCPU or (by == signal.SIGKILL and ended.cpu >= limits.cpu):
        return ExitCause.cpu  # the second is the hard limit, for a program that ignores the first
    if by == signal.SIGXFSZ:
        return ExitCause.file_size
    if by in CRASHES and ALLOCATION_FAILED.search(last_words):
        return ExitCause.memory
    return ExitCause.signal


def _signal(code: int) -> signal.Signals | None:
    try:
        return signal.Signals(code - 128)
    except ValueError:
        return None
