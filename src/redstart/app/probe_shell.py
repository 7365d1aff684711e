"""Run a command or an interactive shell in the same sandbox as the tests."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hmac
import os
import secrets
import select
import signal
import struct
import termios
import tty
from collections.abc import Generator
from pathlib import Path

from redstart.app import inside_terminal
from redstart.app.inside_terminal import CHUNK, HEAD, WINDOW
from redstart.app.wire import AppContext
from redstart.app.workspace import RunGround
from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import IN, Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.port import Sandbox, is_isolating

SHELL_SECONDS = 12 * 3600.0
"""The time limit of a shell: long enough for a person, short enough to end a forgotten one."""
SHELLS = (("/bin/bash", "--norc"), ("/bin/sh",))
"""The shells to try, in order. `--norc`: without a sandbox, the machine's own settings would change the prompt."""
PROMPT = "(%s) $PWD $ "
SCRIPT, TOKEN = "terminal.py", "token"
HANDSHAKE_SECONDS = 10.0
SMALLEST_WINDOW = (24, 80)
"""Lines and columns for a terminal that does not report its size."""


async def run_command(app: AppContext, setup: RunGround, command: tuple[str, ...]) -> Completed:
    """Run a command like the tests: with the same files, variables, services and limits, and no standard input.

    Raises `SandboxUnavailable` with the remedy.
    """
    request = Execution(
        argv=command,
        snapshot=setup.base,
        environment=setup.environment,
        limits=setup.limits,
        cwd=setup.folder,
    )
    return await _require_sandbox(app).run(request)


async def run_shell(app: AppContext, setup: RunGround, keyboard: int, screen: int) -> Completed:
    """Run an interactive shell for the terminal of these two descriptors, until it ends or the terminal goes away.

    The shell has a pseudo terminal that is created inside the sandbox. The user's own terminal is not there, so code
    inside can neither type into it nor change its settings. The limits are those of the tests, except for the time.

    Raises `SandboxUnavailable` with the remedy.
    """
    line = _Line(keyboard, screen)
    server = await asyncio.start_server(line.handle_connection, "127.0.0.1", 0)
    try:
        port: int = server.sockets[0].getsockname()[1]
        prompt = "no sandbox" if _is_open(app) else "sandbox"
        with _cancel_on_hangup():
            completed = await _require_sandbox(app).run(_create_shell_request(setup, port, line, prompt))
    finally:
        server.close()
        line.close()
    if not line.is_open:
        # No output of the shell can have reached the screen, so the printed text is the reason.
        raise SandboxUnavailable(f"no shell could be started in the sandbox: {completed.output.strip()[-500:]}")
    return completed


def describe_sandbox_session(app: AppContext, setup: RunGround) -> str:
    """Describe the sandbox in one line for a person who enters it: where they are, and what differs there."""
    environment = setup.environment
    left_out = "ignored files with secrets (.env, keys)"
    if environment.left_out:
        left_out += f" and {len(environment.left_out)} that are too large"
    network = f"none but {', '.join(environment.services)}" if environment.services else "none"
    parts = (
        f"sandbox {_require_sandbox(app).tier}",
        f"{environment.python} ({environment.chosen})",
        f"network {network}" if not _is_open(app) else "network not restricted",
        f"left out: {left_out}",
        "your changes here are discarded",
    )
    return " · ".join(parts)


def describe_exit_cause(completed: Completed, limits: SandboxLimits) -> str:
    """Return a sentence if a limit or a signal ended the command; empty if it ended by itself."""
    messages = {
        ExitCause.timeout: f"it was stopped after {limits.wall:g} seconds, the time limit (sandbox.wall)",
        ExitCause.cpu: f"one process used {limits.cpu} seconds of processor time, the limit",
        ExitCause.memory: f"it ran out of memory: a process may use {limits.memory / 1e9:.1f} GB (sandbox.memory)",
        ExitCause.file_size: f"it wrote a file larger than {limits.file_size / 1e6:.0f} MB, the limit",
        ExitCause.disk: f"it wrote more than {limits.disk / 1e6:.0f} MB, the limit (sandbox.disk)",
        ExitCause.processes: f"it started more than {limits.processes} processes, the limit (sandbox.processes)",
        ExitCause.output: f"it printed more than {limits.flood / 1e6:.0f} MB, the limit",
        ExitCause.signal: f"a signal ended it (exit code {completed.exit_code})",
    }
    return messages.get(completed.cause, "")


def create_shell_limits(setup: RunGround) -> SandboxLimits:
    """Return the limits of the tests with more time, for a person."""
    return setup.limits.model_copy(update={"wall": SHELL_SECONDS})


def _require_sandbox(app: AppContext) -> Sandbox:
    if app.adapters.sandbox is None:
        raise SandboxUnavailable("no sandbox was requested")
    return app.adapters.sandbox


def _is_open(app: AppContext) -> bool:
    """Whether commands run without isolation, so that the network is that of the machine."""
    return not is_isolating(_require_sandbox(app))


def _create_shell_request(setup: RunGround, port: int, line: _Line, prompt: str) -> Execution:
    lines, columns = line.read_window_size()
    shell = next((candidate for candidate in SHELLS if os.access(candidate[0], os.X_OK)), SHELLS[-1])
    inside = (f"{IN}/{SCRIPT}", str(port), f"{IN}/{TOKEN}", str(lines), str(columns))
    script = Path(inside_terminal.__file__).read_text(encoding="utf-8")
    return Execution(
        argv=(setup.environment.python, "-I", "-S", "-B", *inside, *shell),
        snapshot=setup.base,
        environment=_allow_port(setup.environment, port),
        limits=create_shell_limits(setup),
        cwd=setup.folder,
        variables={"TERM": os.environ.get("TERM", "dumb"), "PS1": PROMPT % prompt},
        files_in={SCRIPT: script, TOKEN: line.token},
    )


def _allow_port(environment: Environment, port: int) -> Environment:
    """Allow the sandbox to reach our end of the connection. It accepts one connection, so nothing inside can open a
    second one.
    """
    return environment.model_copy(update={"services": (*environment.services, f"127.0.0.1:{port}")})


class _Line:
    """Our end of the connection to the shell. It accepts only the first client that sends the token."""

    def __init__(self, keyboard: int, screen: int) -> None:
        self.token = secrets.token_hex(32)
        self.is_open = False
        self._keyboard, self._screen = keyboard, screen
        self._tasks: set[asyncio.Task[None]] = set()

    def handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def read_window_size(self) -> tuple[int, int]:
        """Return lines and columns of the user's terminal."""
        packed = fcntl.ioctl(self._screen, termios.TIOCGWINSZ, bytes(8))
        lines, columns, _, _ = struct.unpack("HHHH", packed)
        return (lines, columns) if lines and columns else SMALLEST_WINDOW

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not await self._is_ours(reader) or self.is_open:
                return
            self.is_open = True
            with self._forward_input(writer):
                while printed := await reader.read(CHUNK):
                    _write_all(self._screen, printed)
        except ConnectionError:
            return  # the sandbox ended; its exit code says why
        finally:
            writer.close()

    async def _is_ours(self, reader: asyncio.StreamReader) -> bool:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                received = await reader.readexactly(len(self.token))
        except (TimeoutError, asyncio.IncompleteReadError):
            return False
        return hmac.compare_digest(received, self.token.encode())

    @contextlib.contextmanager
    def _forward_input(self, writer: asyncio.StreamWriter) -> Generator[None]:
        """Forward every key and the window size to the shell while the context is active."""
        loop = asyncio.get_running_loop()

        def send(kind: bytes, content: bytes) -> None:
            writer.write(HEAD.pack(kind, len(content)) + content)

        def forward_keys() -> None:
            try:
                keys = os.read(self._keyboard, CHUNK)
            except OSError:
                keys = b""
            if keys:
                send(b"d", keys)
            else:  # the terminal is gone, so the shell ends
                loop.remove_reader(self._keyboard)
                writer.close()

        def forward_size() -> None:
            send(b"w", WINDOW.pack(*self.read_window_size()))

        saved_attributes = termios.tcgetattr(self._keyboard)
        tty.setraw(self._keyboard, termios.TCSADRAIN)
        try:
            loop.add_signal_handler(signal.SIGWINCH, forward_size)
            forward_size()  # it may have changed since the shell was asked for
            loop.add_reader(self._keyboard, forward_keys)
            yield
        finally:
            loop.remove_reader(self._keyboard)
            loop.remove_signal_handler(signal.SIGWINCH)
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._keyboard, termios.TCSADRAIN, saved_attributes)


def _write_all(fd: int, content: bytes) -> None:
    """Write everything. Wait if the terminal is slow; output from inside then waits too."""
    while content:
        try:
            content = content[os.write(fd, content) :]
        except BlockingIOError:
            select.select((), (fd,), ())


@contextlib.contextmanager
def _cancel_on_hangup() -> Generator[None]:
    """Cancel the task when the terminal is closed, so that everything created for the shell is removed."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    if task is None:
        yield
        return
    loop.add_signal_handler(signal.SIGHUP, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
