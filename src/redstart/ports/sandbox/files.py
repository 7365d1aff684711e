"""The files that go into an execution and come out of it. None of them can lead a reader out of its folder."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import signal
import stat
import struct
import tempfile
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from redstart.core.errors import ConfigError
from redstart.core.shell import IN, OUT, Completed, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.launch import LaunchEnd
from redstart.ports.sandbox.leftovers import FOLDER, mark

BENEATH, NO_SYMLINKS, NO_MAGICLINKS = 0x08, 0x04, 0x02
OPENAT2 = 437
"""The number of the system call, the same on every machine."""
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_untrusted(folder: int, parts: Sequence[str], max_size: int) -> bytes | None:
    """Read a file below an open folder; None unless it is a regular file with one name and at most that size.

    No link on the way is followed: it could lead to the host. A file with a second name could belong to someone else.
    """
    with contextlib.suppress(OSError), os.fdopen(open_beneath(folder, parts), "rb") as file:
        info = os.fstat(file.fileno())
        if stat.S_ISREG(info.st_mode) and info.st_nlink == 1 and info.st_size <= max_size:
            content = file.read(max_size + 1)  # it may grow meanwhile
            return content if len(content) <= max_size else None
    return None


def open_beneath(folder: int, parts: Sequence[str]) -> int:
    """Open a path below an open folder without following any link, and return its descriptor. Raises `OSError`.

    The kernel opens the path in one step, so that nobody can insert a link in between. An old kernel cannot do this;
    there, the path is opened folder by folder.
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
    descriptor = os.dup(folder)
    try:
        for part in parts[:-1]:
            next_descriptor = os.open(part, FLAGS | os.O_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = next_descriptor
        return os.open(parts[-1], FLAGS, dir_fd=descriptor)
    finally:
        os.close(descriptor)


ERROR_TAIL_BYTES = 8192
"""Bytes: a crash of Node prints a long trace after its reason."""

# Only an error that ended the program counts, so only a traceback's last line as Python itself prints it. A test runner
# that survives to report such an error of one test indents it; it has simply failed.
UNCAUGHT = r"^(?:INTERNALERROR> )?"
PYTHON, NODE = r"\w*Error: \[Errno {}\]", r"\s*(?:Error|errno|code): .*\b{}\b"
# A program prints its name first and the reason last; an exception's message may quote anything.
PROGRAM_PREFIX = r"(?![\w.]*(?:Error|Exception|Warning)\b)[\w./-]+: (?:.*\b)?"


def _compile_error_pattern(errno: int, name: str, text: str, *alternatives: str) -> re.Pattern[str]:
    """Match what Python, Node and programs of the system print for an error of the kernel."""
    forms = (PYTHON.format(errno), NODE.format(name), rf"{PROGRAM_PREFIX}{text}\W*$", *alternatives)
    return re.compile(UNCAUGHT + rf"(?:{'|'.join(forms)})", re.MULTILINE)


OUT_OF_MEMORY = _compile_error_pattern(
    12,
    "ENOMEM",
    "Cannot allocate memory",
    r"[\w.]*MemoryError\b",
    rf"{PROGRAM_PREFIX}(?:Out of space|memory exhausted)\W*$",
)
TOO_LARGE = _compile_error_pattern(27, "EFBIG", "File too large")
DISK_FULL = _compile_error_pattern(28, "ENOSPC", "No space left on device", r".*\bdatabase or disk is full\b")
NO_PROCESS = _compile_error_pattern(
    11,
    "EAGAIN",
    "Resource temporarily unavailable",
    r"RuntimeError: can't (?:start|create) new thread",
    rf"{PROGRAM_PREFIX}Cannot fork\W*$",
)
ALLOCATION_FAILED = re.compile(
    r"MemoryError|bad_alloc|out of memory|cannot allocate memory|unable to allocate|allocation (?:of .* )?failed"
    r"|failed to (?:re)?alloc",
    re.IGNORECASE,
)
CRASHES = {signal.SIGABRT, signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP, signal.SIGILL}


def exit_code(returncode: int) -> int:
    """Convert a return code of `subprocess`, in which a signal is negative, to the convention of `Completed`."""
    return 128 - returncode if returncode < 0 else returncode


def classify(end: LaunchEnd, limits: SandboxLimits) -> ExitCause:
    """Determine why an execution ended. Exit codes of 128 + n count as signal n: a shell or a sandbox in between
    reports it so.

    The runner's own action comes first, then the kernel's counts, then signals that stand for a limit, and last the
    output's text, which a program may print for any reason.
    """
    code = exit_code(end.returncode)
    if end.timed_out:
        return ExitCause.timeout
    if end.stop_cause:
        return end.stop_cause
    if end.killed_for_memory:
        return ExitCause.memory  # whatever the code: the victim may have been a child
    if code == 0:
        return ExitCause.ok
    killed_by = _signal(code)
    if killed_by == signal.SIGXCPU or (killed_by == signal.SIGKILL and end.cpu >= limits.cpu):
        return ExitCause.cpu  # SIGKILL is the hard limit, for a program that ignores SIGXCPU
    if killed_by == signal.SIGXFSZ:
        return ExitCause.file_size
    last_words = end.output[-ERROR_TAIL_BYTES:].decode("utf-8", "replace")
    if killed_by in CRASHES and ALLOCATION_FAILED.search(last_words):
        return ExitCause.memory
    cause = _find_complaint(last_words) if killed_by is None else None
    if cause:
        return cause
    if end.disk_full:
        return ExitCause.disk
    if end.refused_processes:
        return ExitCause.processes
    return ExitCause.signal if killed_by else ExitCause.failed


def _find_complaint(last_words: str) -> ExitCause | None:
    """Return the limit that the output complains about; the last complaint counts, since it is nearest to the end."""
    complaints = (
        (OUT_OF_MEMORY, ExitCause.memory),
        (TOO_LARGE, ExitCause.file_size),
        (DISK_FULL, ExitCause.disk),
        (NO_PROCESS, ExitCause.processes),
    )
    last: tuple[int, ExitCause] | None = None
    for pattern, cause in complaints:
        for match in pattern.finditer(last_words):
            if last is None or match.start() >= last[0]:
                last = (match.start(), cause)
    return last[1] if last else None


def _signal(code: int) -> signal.Signals | None:
    try:
        return signal.Signals(code - 128)
    except ValueError:
        return None


LARGEST_COLLECTED = 64 << 20
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Exchange:
    """The folders of one execution on the host: `inward` with its `files_in`, `outward` for its results.

    Raises `ConfigError` if a name would lead out of its folder.
    """

    def __init__(self, folder: Path, execution: Execution) -> None:
        self.folder = folder
        self.input_folder = folder / "in"
        self.output_folder = folder / "out"
        self._limits = execution.limits
        self._collect = {name: _split_name(name) for name in execution.collect}
        self.input_folder.mkdir()
        self.output_folder.mkdir()
        for name, text in execution.files_in.items():
            path = self.input_folder.joinpath(*_split_name(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")

    def build_completed(self, end: LaunchEnd, outward: int | None = None) -> Completed:
        """Return the end in the port's form, with the collected files.

        `outward` is an open folder to collect from, if the command used another one than ours.
        """
        return Completed(
            exit_code=exit_code(end.returncode),
            cause=classify(end, self._limits),
            output=end.output.decode("utf-8", "replace"),
            truncated=end.truncated,
            files=self._collect_files(outward),
            wall=end.wall,
            cpu=end.cpu,
            peak_memory=end.peak_memory,
        )

    def _collect_files(self, outward: int | None) -> dict[str, str]:
        if not self._collect:
            return {}
        own_folder = os.open(self.output_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            folder = own_folder if outward is None else outward
            read = {name: read_untrusted(folder, parts, LARGEST_COLLECTED) for name, parts in self._collect.items()}
        finally:
            os.close(own_folder)
        return {name: content.decode("utf-8", "replace") for name, content in read.items() if content is not None}


@contextlib.contextmanager
def exchange(scratch: Path, execution: Execution) -> Generator[Exchange]:
    """Make a folder under `scratch` for one execution, and remove it with everything in it at the end."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{FOLDER}{mark()}-", dir=scratch, ignore_cleanup_errors=True) as folder:
        yield Exchange(Path(folder).resolve(), execution)


def build_variables(python: str, extra: Mapping[str, str], *, home: str, temporary: str) -> dict[str, str]:
    """Return the whole environment of a command. It holds nothing of our own, so no key and no token."""
    return {
        "PATH": f"{PurePosixPath(python).parent}:{SYSTEM_PATH}",
        "HOME": home,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": temporary,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **extra,
    }


def fill_placeholders(text: str, inward: str, outward: str) -> str:
    """Fill in the placeholders for the two folders."""
    return text.replace(IN, inward).replace(OUT, outward)


def get_requested_variables(execution: Execution) -> dict[str, str]:
    """Return the variables that the request asks for; its own override those of its environment."""
    return {**execution.environment.variables, **execution.variables}


def _split_name(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ConfigError(f"not the name of a file inside the folder: {name!r}")
    return path.parts
