"""Named ports of the host's loopback, offered at the same address in a sandbox that has no network.

On the host a relay listens on a socket file, one for each address, during one execution. Inside, a forwarder
(`inside_forward`) listens on the port and passes each connection on to that file. The file leads only to that one
address, whatever is sent to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import os
import shutil
import socket
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.sandbox import inside_forward

INSIDE = "/run/redstart/services"
SCRIPT, READY = "forward.py", "ready"
MOST_SERVICES = 16
MOST_CONNECTIONS = 256
LOWEST_PORT = 1024
CHUNK = 1 << 16


class ServiceEndpoint(NamedTuple):
    """An address to listen on inside, and where on the host it leads: the first of `targets` that answers."""

    address: str
    port: int
    targets: tuple[str, ...]
    must: bool
    """Whether the sandbox is useless without this address."""


def parse_endpoints(services: Sequence[str]) -> tuple[ServiceEndpoint, ...]:
    """Parse the services: `host:port` on loopback; `localhost` means both of its addresses, the second if it exists.

    Raises `ConfigError` for any other text, for too many services, and for a port that nobody in a sandbox may open.
    """
    if len(services) > MOST_SERVICES:
        raise ConfigError(f"{len(services)} services are configured; a sandbox can offer at most {MOST_SERVICES}")
    unique: dict[tuple[str, int], ServiceEndpoint] = {}
    for service in services:
        for endpoint in _parse_service(service):
            unique.setdefault((endpoint.address, endpoint.port), endpoint)
    return tuple(unique.values())


def _parse_service(service: str) -> list[ServiceEndpoint]:
    host, _, digits = service.rpartition(":")
    port = int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 5 else 0
    if not 0 < port < 65536:
        raise ConfigError(f"not a service: {service!r}", remedy="write it as host:port, for example 127.0.0.1:5432")
    if port < LOWEST_PORT:
        raise ConfigError(
            f"the service {service!r} cannot be offered in a sandbox: only root may open a port below {LOWEST_PORT}",
            remedy=f"let it listen on port {LOWEST_PORT} or above",
        )
    if host == "localhost":
        four, six = "127.0.0.1", "::1"
        return [
            ServiceEndpoint(four, port, (four, six), must=True),
            ServiceEndpoint(six, port, (six, four), must=False),
        ]
    try:
        address = ipaddress.ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        address = None
    if address is None or not address.is_loopback or "%" in host:
        raise ConfigError(f"the service {service!r} is not on this machine", remedy=f"write it as 127.0.0.1:{port}")
    return [ServiceEndpoint(str(address), port, (str(address),), must=True)]


class Slots:
    """How many connections may still be opened: a command must not use up the file descriptors of this process."""

    def __init__(self, free: int = MOST_CONNECTIONS) -> None:
        self.free = free


class Relays:
    """The host's side for one execution: the socket files in `folder`, and the connections made through them."""

    def __init__(self, folder: Path, offered_endpoints: Sequence[ServiceEndpoint], slots: Slots) -> None:
        self.folder = folder
        self.ready = False
        """Whether the forwarder inside has reported that it listens. The command does not start before that."""
        self._offered_endpoints = offered_endpoints
        self._slots = slots
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def build_command(self, python: str) -> list[str]:
        """Build the command to run inside before the main one; it ends when the ports listen."""
        arguments = (
            f"{endpoint.address},{endpoint.port},{'must' if endpoint.must else 'may'}"
            for endpoint in self._offered_endpoints
        )
        return [python, "-I", "-S", "-B", f"{INSIDE}/{SCRIPT}", INSIDE, *arguments]

    async def open(self) -> None:
        """Raises `OSError` if a file cannot be made."""
        self.folder.mkdir()
        shutil.copyfile(inside_forward.__file__, self.folder / SCRIPT)
        await self._listen(READY, None)
        for number, endpoint in enumerate(self._offered_endpoints):
            await self._listen(str(number), endpoint)

    async def close(self) -> None:
        self._is_closed = True
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, name: str, endpoint: ServiceEndpoint | None) -> None:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if endpoint is None:
                self.ready = True
            if endpoint is None or self._is_closed or self._slots.free <= 0:
                writer.transport.abort()
                return
            self._slots.free -= 1
            task = asyncio.get_running_loop().create_task(_relay(reader, writer, endpoint))
            self._tasks.add(task)
            task.add_done_callback(functools.partial(self._finish_connection, writer))

        sock = _bind_socket_file(self.folder, name)
        try:
            self._servers.append(
                await asyncio.start_unix_server(accept, sock=sock, backlog=MOST_CONNECTIONS, limit=CHUNK)
            )
        except BaseException:
            sock.close()
            raise

    def _finish_connection(self, writer: asyncio.StreamWriter, task: asyncio.Task[None]) -> None:
        writer.transport.abort()  # here, since a task cancelled before its first step closes nothing
        self._tasks.discard(task)
        self._slots.free += 1


@contextlib.asynccontextmanager
async def open_relays(services: Sequence[str], folder: Path, slots: Slots) -> AsyncGenerator[Relays | None]:
    """Open relays to the services, with their files in the new `folder`; None if there are no services.

    Afterwards no connection is left. Raises `ConfigError` as `parse_endpoints` does, and `SandboxUnavailable`.
    """
    if not services:
        yield None
        return
    relays = Relays(folder, parse_endpoints(services), slots)
    try:
        try:
            await relays.open()
        except OSError as error:
            raise SandboxUnavailable(f"The services cannot be relayed to the sandbox: {error}") from error
        yield relays
    finally:
        await relays.close()


def _bind_socket_file(folder: Path, name: str) -> socket.socket:
    """Bind a socket to a file through a descriptor: the name of a socket may have no more than 107 bytes."""
    folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.bind(f"/proc/self/fd/{folder_fd}/{name}")
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(folder_fd)
    return sock


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: ServiceEndpoint) -> None:
    """Relay both directions of one connection, until both have ended or one of them breaks."""
    try:
        host_reader, host_writer = await _connect(endpoint)
    except OSError:  # the service is down
        return
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy_stream(reader, host_writer))
            group.create_task(_copy_stream(host_reader, writer))
    except* OSError:  # one side is gone; the other side's connection is then closed too
        pass
    finally:
        host_writer.transport.abort()


async def _connect(endpoint: ServiceEndpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Raises `OSError` if no target answers."""
    for target in endpoint.targets[:-1]:
        with contextlib.suppress(OSError):
            return await asyncio.open_connection(target, endpoint.port, limit=CHUNK)
    return await asyncio.open_connection(endpoint.targets[-1], endpoint.port, limit=CHUNK)


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.set_write_buffer_limits(0)  # a drain then waits for all data, so an abort loses nothing
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
