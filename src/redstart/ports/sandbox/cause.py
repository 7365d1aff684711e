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
PYTHON, NODE = r"\w*Error: \[Errno {}\]", r"\s*(?:Error|errno|code): .*\b{}\b"
# A program names itself first and the reason last; an exception's message may quote anything.
NAMED = r"(?![\w.]*(?:Error|Exception|Warning)\b)[\w./-]+: (?:.*\b)?"


def _words(errno: int, name: str, text: str, *others: str) -> re.Pattern[str]:
    """What Python, Node and programs of the system print of an error of the kernel's."""
    forms = (PYTHON.format(errno), NODE.format(name), rf"{NAMED}{text}\W*$", *others)
    return re.compile(UNCAUGHT + rf"(?:{'|'.join(forms)})", re.MULTILINE)


OUT_OF_MEMORY = _words(
    12,
    "ENOMEM",
    "Cannot allocate memory",
    r"[\w.]*MemoryError\b",
    rf"{NAMED}(?:Out of space|memory exhausted)\W*$",
)
TOO_LARGE = _words(27, "EFBIG", "File too large")
DISK_FULL = _words(28, "ENOSPC", "No space left on device", r".*\bdatabase or disk is full\b")
NO_PROCESS = _words(
    11,
    "EAGAIN",
    "Resource temporarily unavailable",
    r"RuntimeError: can't (?:start|create) new thread",
    rf"{NAMED}Cannot fork\W*$",
)
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
    """Why it ended. Exit codes of 128 + n count as signal n: a shell or a sandbox in between reports it so.

    What the runner did comes first, then what the kernel has counted, then signals that stand for a limit, and only
    then words, which a program may print for any reason.
    """
    code = exit_code(ended.returncode)
    if ended.timed_out:
        return ExitCause.timeout
    if ended.stopped:
        return ended.stopped
    if ended.killed_for_memory:
        return ExitCause.memory  # whatever the code: the victim may have been a child
    if code == 0:
        return ExitCause.ok
    by = _signal(code)
    if by == signal.SIGXCPU or (by == signal.SIGKILL and ended.cpu >= limits.cpu):
        return ExitCause.cpu  # the second is the hard limit, for a program that ignores the first
    if by == signal.SIGXFSZ:
        return ExitCause.file_size
    last_words = ended.output[-LAST_WORDS:].decode("utf-8", "replace")
    if by in CRASHES and ALLOCATION_FAILED.search(last_words):
        return ExitCause.memory
    said = _said(last_words) if by is None else None
    if said:
        return said
    if ended.disk_full:
        return ExitCause.disk
    if ended.refused_processes:
        return ExitCause.processes
    return ExitCause.signal if by else ExitCause.failed


def _said(last_words: str) -> ExitCause | None:
    """The limit that the program complains of; the last complaint counts, being nearest to the end."""
    complaints = (
        (OUT_OF_MEMORY, ExitCause.memory),
        (TOO_LARGE, ExitCause.file_size),
        (DISK_FULL, ExitCause.disk),
        (NO_PROCESS, ExitCause.processes),
    )
    last: tuple[int, ExitCause] | None = None
    for words, cause in complaints:
        for found in words.finditer(last_words):
            if last is None or found.start() >= last[0]:
                last = (found.start(), cause)
    return last[1] if last else None


def _signal(code: int) -> signal.Signals | None:
    try:
        return signal.Signals(code - 128)
    except ValueError:
        return None
