"""A script inside the sandbox: run a command on a pseudo terminal there, and relay the terminal over a connection.

The target's interpreter runs it, so it needs only the standard library of Python 3.8. Its arguments are the port to
connect to, the file with the token that opens the connection, the lines and columns of the window, and the command.

The command's output is sent unchanged. Input arrives in frames, because it also reports the size of the window: a
letter, the length as four bytes, then that many bytes. `d` holds typed text, `w` the lines and columns as two-byte
numbers.

The exit code is that of the command, or 128 + n after signal n. If the other side closes the connection, the script
ends at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import struct
import sys
import termios

CHUNK = 1 << 16
HEAD = struct.Struct(">cI")
WINDOW = struct.Struct(">HH")
FAREWELL_SECONDS = 10.0
TERMINAL_CLOSED_EXIT_CODE = 129


class TerminalBridge:
    """Relay between the connection and the command's terminal until the command ends."""

    def __init__(self, host: socket.socket, terminal: int, child: int) -> None:
        self._host, self._terminal, self._child = host, terminal, child
        self._received = bytearray()
        """Frames, the last of which may not be complete."""
        self._typed = bytearray()
        """What the command has not taken yet. A long paste must not stop what it prints meanwhile."""
        os.set_blocking(terminal, False)
        self._wakeup, wakeup_socket = socket.socketpair()
        wakeup_socket.setblocking(False)
        self._keep = wakeup_socket
        signal.signal(signal.SIGCHLD, _ignore_signal)  # without a handler nothing is written to the wake-up
        signal.set_wakeup_fd(wakeup_socket.fileno(), warn_on_full_buffer=False)

    def serve(self) -> int:
        """Relay until the command ends, and return its exit code."""
        readers = [self._host, self._wakeup, self._terminal]
        code = self._poll_exit_code()  # it may have ended before its signal was heard
        while code is None:
            writers = [self._terminal] if self._typed else []
            readable, writable, _ = select.select(readers, writers, [])
            if writable:
                self._pass_typed()
            if self._terminal in readable and not self._show():
                readers.remove(self._terminal)  # nobody has it open any more; the end of the command is near
            if self._host in readable and not self._take():
                return TERMINAL_CLOSED_EXIT_CODE
            if self._wakeup in readable:
                self._wakeup.recv(CHUNK)
                code = self._poll_exit_code()
        while self._show():
            pass
        return code

    def _poll_exit_code(self) -> int | None:
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if not pid:
            return None
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

    def _show(self) -> bool:
        """Send what the command printed. Return False if there is nothing to send now."""
        try:
            printed = os.read(self._terminal, CHUNK)
        except OSError:  # nothing yet, or nobody has the terminal open
            return False
        self._host.sendall(printed)
        return bool(printed)

    def _pass_typed(self) -> None:
        with contextlib.suppress(OSError):
            del self._typed[: os.write(self._terminal, self._typed)]

    def _take(self) -> bool:
        """Receive input frames. Return False if the other side has closed the connection."""
        data = self._host.recv(CHUNK)
        self._received += data
        while len(self._received) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._received)
            if len(self._received) < HEAD.size + length:
                break
            content = bytes(self._received[HEAD.size : HEAD.size + length])
            del self._received[: HEAD.size + length]
            if kind == b"d":
                self._typed += content
            elif kind == b"w":
                set_window(self._terminal, *WINDOW.unpack(content))
        return bool(data)


def _ignore_signal(*_: object) -> None:
    """Do nothing: the wake-up socket has already reported the signal."""


def set_window(terminal: int, lines: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def drain_connection(host: socket.socket) -> None:
    """Wait until the other side has received all output, because unsent output is lost with the sandbox."""
    with contextlib.suppress(OSError):
        host.shutdown(socket.SHUT_WR)
        host.settimeout(FAREWELL_SECONDS)
        while host.recv(CHUNK):
            pass


def main(port: str, token: str, lines: str, columns: str, *command: str) -> int:
    host = socket.create_connection(("127.0.0.1", int(port)))
    host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with open(token, "rb") as file:  # noqa: PTH123
        host.sendall(file.read())
    child, terminal = pty.fork()
    if child == 0:
        set_window(0, int(lines), int(columns))
        host.close()
        try:
            os.execvp(command[0], command)  # noqa: S606
        except OSError as error:
            sys.stderr.write(f"{command[0]}: {error.strerror}\r\n")
            sys.stderr.flush()
            os._exit(127)
    code = TerminalBridge(host, terminal, child).serve()
    drain_connection(host)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
