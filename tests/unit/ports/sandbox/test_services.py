"""A sandbox reaches a named port of the host and no other, and nothing else differs."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import socketserver
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.services import ServiceEndpoint, Slots, open_relays, parse_endpoints
from redstart.testing.sandbox import FolderWorkspaces

LARGE = 5 << 20
PRELUDE = """
import os, socket, sys
def connect(port, host='127.0.0.1'):
    return socket.create_connection((host, port), timeout=60)
def everything(sock):
    parts = []
    while True:
        part = sock.recv(1 << 16)
        if not part:
            return b''.join(parts)
        parts.append(part)
"""


class Echo(socketserver.BaseRequestHandler):
    """Read to the end, and only then send a greeting and all of it back, which needs a half-closed connection."""

    server: Server

    def handle(self) -> None:
        sock: socket.socket = self.request
        received = b""
        if self.server.watching:
            self.server.seen = find_forwarders(self.server.port)
        with contextlib.suppress(ConnectionError):
            while part := sock.recv(1 << 16):
                received += part
            sock.sendall(self.server.greeting + received)
            self.server.answered.set()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 300

    def __init__(self, greeting: bytes, host: str = "127.0.0.1") -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.greeting = greeting
        self.answered = threading.Event()
        self.watching = False
        self.seen: list[int] = []
        """Process IDs of the forwarders during a connection."""
        super().__init__((host, 0), Echo)

    @property
    def port(self) -> int:
        return self.server_address[1]


def find_forwarders(port: int) -> list[int]:
    """List the processes of the host that forward to this port."""
    pids: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if f"127.0.0.1,{port},must".encode() in arguments:
                pids.append(int(entry.name))
    return pids


@contextlib.contextmanager
def start_server(greeting: bytes = b"", host: str = "127.0.0.1") -> Iterator[Server]:
    with Server(greeting, host) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with start_server(b"one:") as running:
        yield running


class Box:
    """A sandbox with one snapshot that runs Python code."""

    def __init__(self, folder: Path) -> None:
        self._workspaces = FolderWorkspaces(folder / "snapshots")
        self._snapshot = self._workspaces.create_snapshot("one", {"a.txt": "a"})
        self._mount = str(folder / "repo")
        self.scratch = folder / "scratch"
        self._sandbox = Bubblewrap(self._workspaces, self.scratch)

    async def run_async(
        self, code: str, *services: str, python: str = sys.executable, cwd: str = "", wall: float = 60.0
    ) -> Completed:
        environment = Environment(
            mount=self._mount, python=python, read_only=(sys.prefix, sys.base_prefix), services=services
        )
        argv, limits = (sys.executable, "-c", PRELUDE + code), SandboxLimits(wall=wall)
        return await self._sandbox.run(
            Execution(argv=argv, snapshot=self._snapshot, environment=environment, limits=limits, cwd=cwd)
        )

    def run(self, code: str, *services: str, **options: Any) -> Completed:
        return asyncio.run(self.run_async(code, *services, **options))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def format_address(port: int, host: str = "127.0.0.1") -> str:
    return f"{host}:{port}"


def find_unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def ask(port: int, host: str = "127.0.0.1") -> str:
    return f"s = connect({port}, {host!r}); s.sendall(b'hello'); s.shutdown(socket.SHUT_WR); print(everything(s))"


@pytest.mark.slow
def test_service_is_reachable_and_may_answer_after_client_stops_sending(box: Box, server: Server) -> None:
    completed = box.run(ask(server.port), format_address(server.port))
    assert (completed.output, completed.exit_code, completed.cause) == ("b'one:hello'\n", 0, ExitCause.ok)


@pytest.mark.slow
def test_no_other_host_port_is_reachable(box: Box, server: Server) -> None:
    with start_server(b"two:") as other_server:
        code = f"""
for host, port in (('127.0.0.1', {other_server.port}), ('127.0.0.2', {server.port}), ('::1', {server.port})):
    try:
        connect(port, host)
    except ConnectionRefusedError:
        print('refused')
"""
        assert box.run(code, format_address(server.port)).output == "refused\n" * 3
        assert (
            box.run(ask(other_server.port), format_address(server.port), format_address(other_server.port)).output
            == "b'two:hello'\n"
        )


@pytest.mark.slow
def test_socket_file_leads_only_to_its_service(box: Box, server: Server) -> None:
    with start_server(b"two:") as other_server:
        code = f"""
print(sorted(os.listdir('/run/redstart/services')))
s = socket.socket(socket.AF_UNIX)
s.connect('/run/redstart/services/0')
s.sendall(b'CONNECT 127.0.0.1:{other_server.port} HTTP/1.1\\r\\n\\r\\n')
s.shutdown(socket.SHUT_WR)
print(everything(s)[:11])
try:
    open('/run/redstart/services/forward.py', 'a')
except OSError as error:
    print(error.strerror)
"""
        lines = box.run(code, format_address(server.port)).output.splitlines()
    assert lines == ["['0', 'forward.py', 'ready']", "b'one:CONNECT'", "Read-only file system"]


@pytest.mark.slow
def test_large_data_passes_both_ways(box: Box, server: Server) -> None:
    code = f"""
sent = os.urandom(1 << 20) * {LARGE >> 20}
s = connect({server.port})
s.sendall(sent)
s.shutdown(socket.SHUT_WR)
print(everything(s) == b'one:' + sent, len(sent))
"""
    assert box.run(code, format_address(server.port)).output == f"True {LARGE}\n"


@pytest.mark.slow
def test_end_of_a_long_answer_arrives_after_the_service_closes(box: Box) -> None:
    with start_server(b"x" * LARGE) as generous:
        code = f"""
s = connect({generous.port})
s.shutdown(socket.SHUT_WR)
print(len(everything(s)))
"""
        assert box.run(code, format_address(generous.port)).output == f"{LARGE}\n"


@pytest.mark.slow
async def test_concurrent_executions_have_their_own_services(box: Box, server: Server) -> None:
    async def run_both(other_port: int) -> list[Completed]:
        return await asyncio.gather(
            box.run_async(ask(server.port), format_address(server.port)),
            box.run_async(ask(other_port), format_address(other_port), format_address(server.port)),
        )

    with start_server(b"two:") as other_server:
        outputs = [completed.output for completed in await run_both(other_server.port)]
    assert outputs == ["b'one:hello'\n", "b'two:hello'\n"]


@pytest.mark.slow
def test_excess_connections_are_closed_and_the_rest_continue(box: Box, server: Server) -> None:
    code = f"""
socks = [connect({server.port}) for _ in range(257)]
print(socks[-1].recv(1))
for s in (socks[0], socks[255]):
    s.shutdown(socket.SHUT_WR)
    print(everything(s))
"""
    assert box.run(code, format_address(server.port)).output == "b''\nb'one:'\nb'one:'\n"


@pytest.mark.slow
def test_connection_slot_is_freed_when_the_connection_ends(box: Box, server: Server) -> None:
    code = f"""
for _ in range(300):
    s = connect({server.port})
    s.shutdown(socket.SHUT_WR)
    assert everything(s) == b'one:'
    s.close()
"""
    completed = box.run(code, format_address(server.port))
    assert (completed.output, completed.exit_code) == ("", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["print('out'); print('err', file=sys.stderr); sys.exit(3)", "os.kill(os.getpid(), 9)"]
)
def test_exit_and_output_are_the_same_with_and_without_a_service(box: Box, server: Server, code: str) -> None:
    without_service, using = box.run(code), box.run(code, format_address(server.port))
    assert (using.exit_code, using.cause, using.output) == (
        without_service.exit_code,
        without_service.cause,
        without_service.output,
    )
    assert without_service.cause is not ExitCause.ok


@pytest.mark.slow
def test_missing_directory_is_a_failure_of_the_command(box: Box, server: Server) -> None:
    assert box.run("", format_address(server.port), cwd="nowhere").exit_code == 127


@pytest.mark.slow
def test_timeout_is_still_reported_and_leaves_nothing_behind(box: Box, server: Server) -> None:
    hang = f"s = connect({server.port}); s.recv(1)"
    assert box.run(hang, format_address(server.port), wall=2).cause is ExitCause.timeout
    assert find_forwarders(server.port) == []
    assert list(box.scratch.iterdir()) == []


@pytest.mark.slow
def test_no_process_or_file_is_left_afterwards(box: Box, server: Server) -> None:
    server.watching = True
    box.run(ask(server.port), format_address(server.port))
    assert server.seen  # while it ran
    assert find_forwarders(server.port) == []
    assert list(box.scratch.iterdir()) == []


async def test_no_connection_is_left_afterwards(tmp_path: Path, server: Server) -> None:
    slots = Slots()

    async def read_open_connection() -> bytes:
        async with open_relays([format_address(server.port)], tmp_path / "services", slots):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "services" / "0")
            writer.write(b"hello")
            while slots.free == 256:  # noqa: ASYNC110 (until the relay has accepted)
                await asyncio.sleep(0)
        assert slots.free == 256
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_unix_connection(tmp_path / "services" / "0")
        try:
            return await reader.read()
        finally:
            writer.close()

    assert await read_open_connection() == b""


async def test_relay_closes_excess_connections(tmp_path: Path, server: Server) -> None:
    async def read_second_connection() -> bytes:
        async with open_relays([format_address(server.port)], tmp_path / "services", Slots(1)):
            _, first_writer = await asyncio.open_unix_connection(tmp_path / "services" / "0")
            reader, writer = await asyncio.open_unix_connection(tmp_path / "services" / "0")
            try:
                return await asyncio.wait_for(reader.read(), 30)
            finally:
                first_writer.close()
                writer.close()

    assert await read_second_connection() == b""


async def test_relay_keeps_the_end_of_an_answer_until_it_is_read(tmp_path: Path) -> None:
    async def count_received_bytes(port: int, folder: Path) -> int:
        loop, total = asyncio.get_running_loop(), 0
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            async with open_relays([format_address(port)], folder, Slots()):
                await loop.sock_connect(client, str(folder / "0"))
                client.shutdown(socket.SHUT_WR)
                assert await loop.run_in_executor(None, generous.answered.wait, 30)
                for _ in range(100):  # the relay reads what it can, and might drop what it cannot pass on
                    await asyncio.sleep(0)
                while part := await loop.sock_recv(client, 1 << 16):
                    total += len(part)
        return total

    for size in range(1 << 17, 1 << 18, 1 << 14):  # a socket buffers about as much
        with start_server(b"x" * size) as generous:
            assert await count_received_bytes(generous.port, tmp_path / str(size)) == size


@pytest.mark.slow
def test_nothing_is_started_without_a_service(box: Box) -> None:
    code = "print(os.path.exists('/run/redstart/services'), [p for p in os.listdir('/proc') if p.isdigit()])"
    assert re.fullmatch(r"False \['1', '\d+'\]\n", box.run(code).output)


@pytest.mark.slow
def test_unavailable_service_closes_the_connection_immediately(box: Box) -> None:
    port = find_unused_port()
    assert box.run(f"s = connect({port}); print(s.recv(1))", format_address(port)).output == "b''\n"


@pytest.mark.slow
def test_localhost_means_either_loopback_address(box: Box, server: Server) -> None:
    assert (
        box.run(
            ask(server.port) + "; " + ask(server.port, "localhost"), format_address(server.port, "localhost")
        ).output
        == "b'one:hello'\n" * 2
    )


def has_sixth_version() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        return True
    return False


@pytest.mark.slow
@pytest.mark.skipif(not has_sixth_version(), reason="this machine has no ::1")
def test_ipv6_loopback_is_supported(box: Box) -> None:
    with start_server(b"six:", "::1") as ipv6_server:
        assert (
            box.run(ask(ipv6_server.port, "::1"), format_address(ipv6_server.port, "[::1]")).output == "b'six:hello'\n"
        )
        assert box.run(ask(ipv6_server.port), format_address(ipv6_server.port, "localhost")).output == "b'six:hello'\n"


@pytest.mark.slow
def test_command_does_not_run_without_its_services(box: Box, server: Server) -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-python"):
        box.run("print('ran')", format_address(server.port), python="/usr/bin/no-such-python")


@pytest.mark.slow
def test_command_killing_its_own_group_does_not_stop_the_service(box: Box, server: Server) -> None:
    code = "import signal; signal.signal(15, signal.SIG_IGN); os.killpg(0, 15); " + ask(server.port)
    assert box.run(code, format_address(server.port)).output == "b'one:hello'\n"


@pytest.mark.slow
def test_long_scratch_path_is_supported(tmp_path: Path, server: Server) -> None:
    box = Box(tmp_path / ("long" * 30))
    assert box.run(ask(server.port), format_address(server.port)).output == "b'one:hello'\n"


def test_valid_services_are_accepted() -> None:
    assert parse_endpoints(["127.0.0.1:5432", "127.0.0.1:5432", "[::1]:6379"]) == (
        ServiceEndpoint("127.0.0.1", 5432, ("127.0.0.1",), must=True),
        ServiceEndpoint("::1", 6379, ("::1",), must=True),
    )
    assert [endpoint.address for endpoint in parse_endpoints(["localhost:5432"])] == ["127.0.0.1", "::1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "service",
    [
        *("", ":5432", "5432", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80"),
        *("10.0.0.1:5432", "0.0.0.0:5432", "example.org:5432", "127.0.0.1:54x", "127.0.0.1:٥٤٣٢", "a,b:5432"),
        *("127.0.0.1,1,must:5432", "[::1%lo]:5432", "[127.0.0.1:5432", "127.0.0.1;true:5432"),
    ],
)
def test_invalid_service_is_rejected(box: Box, service: str) -> None:
    with pytest.raises(ConfigError) as caught:
        box.run("", service)
    assert caught.value.remedy


def test_at_most_sixteen_services_are_accepted() -> None:
    names = [format_address(port) for port in range(5000, 5017)]
    assert len(parse_endpoints(names[:16])) == 16
    with pytest.raises(ConfigError, match="17 services"):
        parse_endpoints(names)
