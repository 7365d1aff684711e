"""A graph database of one's own, for a test: on loopback, by password, ended with the block that started it.

It is ArcadeDB, which speaks Bolt and Cypher as Neo4j does. It is not Neo4j: what is tried here is what both understand.
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
    """Where it listens, and who may come in."""

    url: str
    user: str
    password: str
    database: str


@contextmanager
def serve_bolt(folder: Path) -> Generator[Bolt]:
    """A running server with one empty database, which keeps its data in `folder`; ended at the end.

    It is the one of the wheel `arcadedb-embedded`, with the Java that comes with it. Raises `ConfigError` where that is
    not installed, and `PortError` where it does not start.
    """
    wheel = find_spec("arcadedb_embedded")
    places = [Path(location) for location in (wheel and wheel.submodule_search_locations) or ()]
    if not places:
        raise ConfigError("there is no server that speaks Bolt", remedy="Install one: pip install arcadedb-embedded")
    (folder / "log").mkdir(parents=True)
    bolt, http = _free_ports()
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
    said = [f"-Darcadedb.{name}={value}" for name, value in options.items()]
    java = [str(places[0] / "jre" / "bin" / "java"), "-Xmx512m", "-cp", str(places[0] / "jars" / "*")]
    # Other users of the machine see the arguments of a process, and not its environment.
    secret = {"JDK_JAVA_OPTIONS": f"-Darcadedb.server.rootPassword={password}"}
    command = [*java, *said, "com.arcadedb.server.ArcadeDBServer"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=secret, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _wait(process, folder / "server.log")
        yield Bolt(f"bolt://127.0.0.1:{bolt}", USER, password, DATABASE)
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    """It listens before it has its database: what it writes last is what counts."""
    ends = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < ends:
        if _READY in log.read_bytes():
            return
        time.sleep(0.1)
    raise PortError(f"the graph database does not start: {log.read_text(errors='replace')[-2000:]}")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1]), int(other.getsockname()[1])
