"""Plays an attack as if a user had started the agent at a terminal, and reports whether it reached the terminal.

As a program: `in_terminal.py BACKEND ATTACK RESULT` takes control of the terminal on its standard input.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

SECONDS = 300.0
TYPED = b"TYPED"


def in_terminal(backend: str, attack: str, folder: Path) -> tuple[list[str], int, float]:
    """Return evidence, survivors and seconds of an attack that another process plays at a terminal.

    Raises `RuntimeError` with the output of that process if it leaves no result.
    """
    master, terminal = pty.openpty()
    result = folder / "in-terminal.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-B", __file__, backend, attack, str(result)]
    try:
        with subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
        ) as process:
            os.close(terminal)
            screen = _read_terminal(master, process)
    finally:
        os.close(master)
    if not result.exists():
        raise RuntimeError(screen.decode(errors="replace"))
    evidence, survivors, seconds = json.loads(result.read_text())
    typed = ["terminal: typed or printed"] if TYPED in screen else []
    return [*evidence, *typed], survivors, seconds


def _read_terminal(master: int, played: subprocess.Popen[bytes]) -> bytes:
    """Return all that the terminal showed. It echoes, so this includes all typed text."""
    screen, deadline = b"", time.monotonic() + SECONDS
    with contextlib.suppress(OSError):  # the last process at the terminal is gone
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.1)[0]:
                screen += os.read(master, 1 << 16)
            elif played.poll() is not None:
                break
    if played.poll() is None and time.monotonic() > deadline:
        played.kill()
    return screen


def main(backend: str, name: str, result: str) -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    from catalogue import attacks
    from harness import play_here
    from yard import yard

    attack = next(candidate for candidate in attacks() if candidate.name == name)
    with tempfile.TemporaryDirectory(prefix="rt-") as folder:
        Path(folder).chmod(0o755)
        with yard(Path(folder)) as testbed:
            outcome = play_here(attack, backend, testbed)
    Path(result).write_text(json.dumps([outcome.evidence, outcome.survivors, outcome.seconds]))


if __name__ == "__main__":
    main(*sys.argv[1:])
