"""A graph database for a test: on loopback, with a password, stopped at the end of the block that started it.

It is ArcadeDB, which speaks Bolt and Cypher like Neo4j. It is not Neo4j: tests cover only what both understand.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import ConfigError, PortError

START_SECONDS = 120.0
DATABASE = "mirror"
USER = "root"
_READY = b"ArcadeDB Server started"


class Bolt(NamedTuple):
    """Its address and credentials."""

    url: str
    user: str
    password: str
    database: str


@contextmanager
def serve_bolt(folder: Path) -> Generator[Bolt]:
    """Run a server with one empty database whose data is in `folder`; stop it at the end.

    The server and its Java come from the wheel `arcadedb-embedded`. Raises `ConfigError` if the wheel is not
    installed, and `PortError` if the server does not start.
    """
    wheel = find_spec("arcadedb_embedded")
    places = [Path(location) for location in (wheel and wheel.submodule_search_locations) or ()]
    if not places:
        raise ConfigError("no Bolt server is installed", remedy="Install one: pip install arcadedb-embedded")
    (folder / "log").mkdir(parents=True)
    bolt, http = _find_free_ports()
    password = secrets.token_hex(16)
    options = {
        "server.rootPath": folder,
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.httpIncomingHost": "127.0.0.1",
        "server.httpIncomingPort": http,
        "server.defaultDatabases": f"{DATABASE}[{USER}]",
        "bolt.host": "127.0.0.1",
        "bolt.port": bolt,
    }
    java_options = [f"-Darcadedb.{name}={value}" for name, value in options.items()]
    java = [str(places[0] / "jre" / "bin" / "java"), "-Xmx512m", "-cp", str(places[0] / "jars" / "*")]
    # Other users of the machine can see the arguments of a process but not its environment.
    secret = {"JDK_JAVA_OPTIONS": f"-Darcadedb.server.rootPassword={password}"}
    command = [*java, *java_options, "com.arcadedb.server.ArcadeDBServer"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=secret, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, folder / "server.log")
        yield Bolt(f"bolt://127.0.0.1:{bolt}", USER, password, DATABASE)
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server is ready. It listens before it has its database, so wait for the last line of its log."""
    ends = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < ends:
        if _READY in log.read_bytes():
            return
        time.sleep(0.1)
    raise PortError(f"the graph database did not start: {log.read_text(errors='replace')[-2000:]}")


def _find_free_ports() -> tuple[int, int]:
    with socket.socket() as first_socket, socket.socket() as second_socket:
        first_socket.bind(("127.0.0.1", 0))
        second_socket.bind(("127.0.0.1", 0))
        return int(first_socket.getsockname()[1]), int(second_socket.getsockname()[1])
