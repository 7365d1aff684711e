"""Talk to a Docker or Podman daemon over its socket file.

The command line of either would also work, but it starts a program for every request, cannot be drained and stopped at
the same time without threads, and may be missing where the socket exists. The protocol is needed for only a handful of
requests, so there is no library for it either.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from redstart.core.errors import ConfigError, SandboxUnavailable

SOCKET = "/var/run/docker.sock"
SCHEME = "unix://"
CHUNK = 1 << 16
ANSWER_SECONDS = 60.0
LARGEST_ANSWER = 16 << 20
FRAME_HEAD, STDERR_STREAM = 8, 2
NOT_FOUND, CONFLICT = 404, 409

START = "Start Docker (`systemctl start docker`), or set DOCKER_HOST to another endpoint, such as Podman's socket."
ACCESS_DENIED_REMEDY = (
    "This user may not use Docker's socket. Add the user to the group `docker`, or use Podman or rootless Docker."
)


class DaemonRefused(Exception):
    """The daemon answered with an error; `str` of it is the daemon's message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ResponseHead(NamedTuple):
    """The first part of a response."""

    status: int
    headers: dict[str, str]


class DaemonApi:
    """Sends requests to one daemon. It holds no connection open, so any event loop may use it."""

    def __init__(self, socket: str) -> None:
        self.socket = socket

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        timeout_seconds: float | None = ANSWER_SECONDS,
    ) -> Any:
        """Return the response's JSON, None if it is empty.

        Raises `DaemonRefused`, and `SandboxUnavailable` if there is no response.
        """
        try:
            async with (
                asyncio.timeout(timeout_seconds),
                self._request(method, path, query, _encode_json(body)) as (head, reader),
            ):
                content = await _read_content(reader, head)
        except TimeoutError as error:
            raise SandboxUnavailable(
                f"Docker did not answer within {timeout_seconds:g} seconds: {method} {path}"
            ) from error
        if head.status >= 400:
            raise DaemonRefused(head.status, _parse_message(content))
        return _parse_json(content) if content.strip() else None

    @contextlib.asynccontextmanager
    async def open_stream(
        self, path: str, body: object = None, *, query: Mapping[str, str] | None = None
    ) -> AsyncGenerator[OutputStream]:
        """Open a connection that the daemon hands over to a container: its output and its input.

        Raises the same errors as `call`.
        """
        upgrade = {"Connection": "Upgrade", "Upgrade": "tcp"}
        async with self._request("POST", path, query, _encode_json(body), upgrade) as (head, reader):
            if head.status >= 400:
                raise DaemonRefused(head.status, _parse_message(await _read_content(reader, head)))
            yield OutputStream(reader)

    async def send(self, path: str, query: Mapping[str, str], file: Path, *, timeout_seconds: float) -> list[Any]:
        """Post a file and return the daemon's progress as a list. Raises the same errors as `call`."""
        try:
            async with asyncio.timeout(timeout_seconds), self._request("POST", path, query, file) as (head, reader):
                content = await _read_content(reader, head)
        except TimeoutError as error:
            raise SandboxUnavailable(f"Docker took more than {timeout_seconds:g} seconds: {path}") from error
        if head.status >= 400:
            raise DaemonRefused(head.status, _parse_message(content))
        return as_list(_parse_json(content))

    @contextlib.asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes | Path,
        extra_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[tuple[ResponseHead, asyncio.StreamReader]]:
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket, limit=CHUNK)
        except PermissionError as error:
            raise SandboxUnavailable(
                f"Docker cannot be reached at {self.socket}: {error}", remedy=ACCESS_DENIED_REMEDY
            ) from error
        except OSError as error:
            raise SandboxUnavailable(f"Docker cannot be reached at {self.socket}: {error}", remedy=START) from error
        try:
            size = body.stat().st_size if isinstance(body, Path) else len(body)
            target = quote(path) + (f"?{urlencode(query)}" if query else "")
            kind = "application/x-tar" if isinstance(body, Path) else "application/json"
            headers = {"Host": "docker", "Content-Type": kind, "Content-Length": str(size), "Connection": "close"}
            lines = (f"{name}: {value}" for name, value in {**headers, **(extra_headers or {})}.items())
            writer.write("\r\n".join((f"{method} {target} HTTP/1.1", *lines, "", "")).encode())
            await _write(writer, body)
            yield await _read_head(reader), reader
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise SandboxUnavailable(f"Docker broke off the request {method} {path}: {error}") from error
        finally:
            writer.transport.abort()


class OutputChunk(NamedTuple):
    """A piece of a container's output: from its standard output or, if `second`, from its standard error."""

    is_stderr: bool
    content: bytes


class OutputStream:
    """A container's output as the daemon passes it on: in frames, each from one of its two streams."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def read_chunks(self) -> AsyncIterator[OutputChunk]:
        """Yield chunks until the container or the daemon closes its end."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await self._reader.readexactly(FRAME_HEAD)
                remaining = int.from_bytes(head[4:], "big")
                while remaining:
                    chunk = await self._reader.read(min(remaining, CHUNK))
                    if not chunk:
                        return
                    remaining -= len(chunk)
                    yield OutputChunk(head[0] == STDERR_STREAM, chunk)


def parse_socket(address: str) -> str:
    """Return the socket file of a `DOCKER_HOST`, or the usual one.

    Raises `ConfigError` for any other kind of address.
    """
    if not address:
        return SOCKET
    if not address.startswith(SCHEME):
        raise ConfigError(
            f"DOCKER_HOST is {address.partition('@')[2] or address}, but must be a socket file",
            remedy="set DOCKER_HOST to unix:///path/to/the.sock, since a sandbox mounts folders of this machine",
        )
    return address.removeprefix(SCHEME)


def _encode_json(body: object) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


async def _write(writer: asyncio.StreamWriter, body: bytes | Path) -> None:
    if isinstance(body, bytes):
        writer.write(body)
        await writer.drain()
        return
    descriptor = os.open(body, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, 1 << 20):
            writer.write(chunk)
            await writer.drain()


async def _read_head(reader: asyncio.StreamReader) -> ResponseHead:
    status = await reader.readline()
    headers: dict[str, str] = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    parts = status.split(None, 2)
    if len(parts) < 2:
        raise ConnectionError("the daemon closed the connection")
    return ResponseHead(int(parts[1]), headers)


async def _read_content(reader: asyncio.StreamReader, head: ResponseHead) -> bytes:
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        content = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            content += await reader.readexactly(size)
            await reader.readline()
            if len(content) > LARGEST_ANSWER:
                raise ConnectionError("the response is too large")
        return content
    if "content-length" in head.headers:
        return await reader.readexactly(min(int(head.headers["content-length"]), LARGEST_ANSWER))
    return b"" if head.status in (204, 304) else await reader.read(LARGEST_ANSWER)


def as_list(answer: Any) -> list[Any]:
    """Return a response of one or several values as a list."""
    return cast("list[Any]", answer) if isinstance(answer, list) else [] if answer is None else [answer]


def _parse_json(content: bytes) -> Any:
    """Parse JSON; a list if the daemon sent several values, one per line."""
    try:
        return json.loads(content)
    except ValueError:
        return [json.loads(line) for line in content.splitlines() if line.strip()]


def _parse_message(content: bytes) -> str:
    text = content.decode("utf-8", "replace").strip()
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(text)["message"])
    return text
