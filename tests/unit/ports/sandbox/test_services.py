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
from redstart.ports.sandbox.services import ServiceEndpoint, Slots, endpoints, relayed
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
            self.server.seen = forwarders(self.server.port)
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


def forwarders(port: int) -> list[int]:
    """List the processes of the host that forward to this port."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            if f"127.0.0.1,{port},must".encode() in arguments:
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def serving(greeting: bytes = b"", host: str = "127.0.0.1") -> Iterator[Server]:
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
    with serving(b"one:") as running:
        yield running


class Box:
    """A sandbox with one snapshot that runs Python code."""

    def __init__(self, folder: Path) -> None:
        self._workspaces = FolderWorkspaces(folder / "snapshots")
        self._snapshot = self._workspaces.snapshot("one", {"a.txt": "a"})
        self._mount = str(folder / "repo")
        self.scratch = folder / "scratch"
        self._sandbox = Bubblewrap(self._workspaces, self.scratch)

    async def ran(
        self, code: str, *services: str, python: str = sys.executable, cwd: str = "", wall: float = 60.0
    ) -> Completed:
        environment = Environment(
            mount=self._mount, python=python, read_only=(sys.prefix, sys.base_prefix), services=services
        )
        argv, limits = (sys.executable, "-c", PRELUDE + code), SandboxLimits(wall=wall)
        return await self._sandbox.run(
            Execution(argv=argv, snapshot=self._snapshot, environment=environment, limits=limits, cwd=cwd)
        )

    def run(self, code: str, *services: str, **more: Any) -> Completed:
        return asyncio.run(self.ran(code, *services, **more))


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


def at(port: int, host: str = "127.0.0.1") -> str:
    return f"{host}:{port}"


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def ask(port: int, host: str = "127.0.0.1") -> str:
    return f"s = connect({port}, {host!r}); s.sendall(b'hello'); s.shutdown(socket.SHUT_WR); print(everything(s))"


@pytest.mark.slow
def test_a_service_is_reached_and_may_answer_after_the_client_has_ended(box: Box, server: Server) -> None:
    done = box.run(ask(server.port), at(server.port))
    assert (done.output, done.exit_code, done.cause) == ("b'one:hello'\n", 0, ExitCause.ok)


@pytest.mark.slow
def test_no_other_port_of_the_host_is_reached(box: Box, server: Server) -> None:
    with serving(b"two:") as other:
        code = f"""
for host, port in (('127.0.0.1', {other.port}), ('127.0.0.2', {server.port}), ('::1', {server.port})):
    try:
        connect(port, host)
    except ConnectionRefusedError:
        print('refused')
"""
        assert box.run(code, at(server.port)).output == "refused\n" * 3
        assert box.run(ask(other.port), at(server.port), at(other.port)).output == "b'two:hello'\n"


@pytest.mark.slow
def test_the_socket_file_leads_to_the_service_whatever_is_sent(box: Box, server: Server) -> None:
    with serving(b"two:") as other:
        code = f"""
print(sorted(os.listdir('/run/redstart/services')))
s = socket.socket(socket.AF_UNIX)
s.connect('/run/redstart/services/0')
s.sendall(b'CONNECT 127.0.0.1:{other.port} HTTP/1.1\\r\\n\\r\\n')
s.shutdown(socket.SHUT_WR)
print(everything(s)[:11])
try:
    open('/run/redstart/services/forward.py', 'a')
except OSError as error:
    print(error.strerror)
"""
        told = box.run(code, at(server.port)).output.splitlines()
    assert told == ["['0', 'forward.py', 'ready']", "b'one:CONNECT'", "Read-only file system"]


@pytest.mark.slow
def test_much_is_sent_both_ways(box: Box, server: Server) -> None:
    code = f"""
sent = os.urandom(1 << 20) * {LARGE >> 20}
s = connect({server.port})
s.sendall(sent)
s.shutdown(socket.SHUT_WR)
print(everything(s) == b'one:' + sent, len(sent))
"""
    assert box.run(code, at(server.port)).output == f"True {LARGE}\n"


@pytest.mark.slow
def test_the_last_of_a_long_answer_arrives_after_the_service_has_closed(box: Box) -> None:
    with serving(b"x" * LARGE) as generous:
        code = f"""
s = connect({generous.port})
s.shutdown(socket.SHUT_WR)
print(len(everything(s)))
"""
        assert box.run(code, at(generous.port)).output == f"{LARGE}\n"


@pytest.mark.slow
def test_two_executions_at_once_have_each_their_own(box: Box, server: Server) -> None:
    async def both(other: int) -> list[Completed]:
        return await asyncio.gather(
            box.ran(ask(server.port), at(server.port)), box.ran(ask(other), at(other), at(server.port))
        )

    with serving(b"two:") as other:
        outputs = [done.output for done in asyncio.run(both(other.port))]
    assert outputs == ["b'one:hello'\n", "b'two:hello'\n"]


@pytest.mark.slow
def test_too_many_connections_are_closed_and_the_rest_goes_on(box: Box, server: Server) -> None:
    code = f"""
socks = [connect({server.port}) for _ in range(257)]
print(socks[-1].recv(1))
for s in (socks[0], socks[255]):
    s.shutdown(socket.SHUT_WR)
    print(everything(s))
"""
    assert box.run(code, at(server.port)).output == "b''\nb'one:'\nb'one:'\n"


@pytest.mark.slow
def test_a_connection_is_given_back_when_it_ends(box: Box, server: Server) -> None:
    code = f"""
for _ in range(300):
    s = connect({server.port})
    s.shutdown(socket.SHUT_WR)
    assert everything(s) == b'one:'
    s.close()
"""
    done = box.run(code, at(server.port))
    assert (done.output, done.exit_code) == ("", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["print('out'); print('err', file=sys.stderr); sys.exit(3)", "os.kill(os.getpid(), 9)"]
)
def test_end_and_output_are_as_without_a_service(box: Box, server: Server, code: str) -> None:
    without, using = box.run(code), box.run(code, at(server.port))
    assert (using.exit_code, using.cause, using.output) == (without.exit_code, without.cause, without.output)
    assert without.cause is not ExitCause.ok


@pytest.mark.slow
def test_a_missing_folder_is_the_commands_own_failure(box: Box, server: Server) -> None:
    assert box.run("", at(server.port), cwd="nowhere").exit_code == 127


@pytest.mark.slow
def test_a_timeout_is_still_one_and_nothing_is_left(box: Box, server: Server) -> None:
    hang = f"s = connect({server.port}); s.recv(1)"
    assert box.run(hang, at(server.port), wall=2).cause is ExitCause.timeout
    assert forwarders(server.port) == []
    assert list(box.scratch.iterdir()) == []


@pytest.mark.slow
def test_afterwards_there_is_no_process_and_no_file(box: Box, server: Server) -> None:
    server.watching = True
    box.run(ask(server.port), at(server.port))
    assert server.seen  # while it ran
    assert forwarders(server.port) == []
    assert list(box.scratch.iterdir()) == []


def test_afterwards_no_connection_is_left(tmp_path: Path, server: Server) -> None:
    slots = Slots()

    async def left_open() -> bytes:
        async with relayed([at(server.port)], tmp_path / "services", slots):
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

    assert asyncio.run(left_open()) == b""


def test_the_relay_itself_closes_what_is_too_many(tmp_path: Path, server: Server) -> None:
    async def second() -> bytes:
        async with relayed([at(server.port)], tmp_path / "services", Slots(1)):
            _, first = await asyncio.open_unix_connection(tmp_path / "services" / "0")
            reader, writer = await asyncio.open_unix_connection(tmp_path / "services" / "0")
            try:
                return await asyncio.wait_for(reader.read(), 30)
            finally:
                first.close()
                writer.close()

    assert asyncio.run(second()) == b""


def test_the_relay_keeps_the_last_of_an_answer_until_it_is_read(tmp_path: Path) -> None:
    async def length(port: int, folder: Path) -> int:
        loop, received = asyncio.get_running_loop(), 0
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            async with relayed([at(port)], folder, Slots()):
                await loop.sock_connect(client, str(folder / "0"))
                client.shutdown(socket.SHUT_WR)
                assert await loop.run_in_executor(None, generous.answered.wait, 30)
                for _ in range(100):  # the relay reads what it can, and might drop what it cannot pass on
                    await asyncio.sleep(0)
                while part := await loop.sock_recv(client, 1 << 16):
                    received += len(part)
        return received

    for size in range(1 << 17, 1 << 18, 1 << 14):  # a socket buffers about as much
        with serving(b"x" * size) as generous:
            assert asyncio.run(length(generous.port, tmp_path / str(size))) == size


@pytest.mark.slow
def test_without_a_service_nothing_is_started(box: Box) -> None:
    code = "print(os.path.exists('/run/redstart/services'), [p for p in os.listdir('/proc') if p.isdigit()])"
    assert re.fullmatch(r"False \['1', '\d+'\]\n", box.run(code).output)


@pytest.mark.slow
def test_a_service_that_is_down_closes_the_connection_at_once(box: Box) -> None:
    port = unused_port()
    assert box.run(f"s = connect({port}); print(s.recv(1))", at(port)).output == "b''\n"


@pytest.mark.slow
def test_localhost_is_either_of_its_addresses(box: Box, server: Server) -> None:
    assert (
        box.run(ask(server.port) + "; " + ask(server.port, "localhost"), at(server.port, "localhost")).output
        == "b'one:hello'\n" * 2
    )


def has_sixth_version() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        return True
    return False


@pytest.mark.slow
@pytest.mark.skipif(not has_sixth_version(), reason="this machine has no ::1")
def test_the_sixth_version_of_loopback(box: Box) -> None:
    with serving(b"six:", "::1") as six:
        assert box.run(ask(six.port, "::1"), at(six.port, "[::1]")).output == "b'six:hello'\n"
        assert box.run(ask(six.port), at(six.port, "localhost")).output == "b'six:hello'\n"


@pytest.mark.slow
def test_the_command_does_not_run_without_its_services(box: Box, server: Server) -> None:
    with pytest.raises(SandboxUnavailable, match="no-such-python"):
        box.run("print('ran')", at(server.port), python="/usr/bin/no-such-python")


@pytest.mark.slow
def test_a_kill_of_its_own_group_leaves_the_service(box: Box, server: Server) -> None:
    code = "import signal; signal.signal(15, signal.SIG_IGN); os.killpg(0, 15); " + ask(server.port)
    assert box.run(code, at(server.port)).output == "b'one:hello'\n"


@pytest.mark.slow
def test_a_long_path_of_the_scratch_folder(tmp_path: Path, server: Server) -> None:
    box = Box(tmp_path / ("long" * 30))
    assert box.run(ask(server.port), at(server.port)).output == "b'one:hello'\n"


def test_what_a_service_may_be() -> None:
    assert endpoints(["127.0.0.1:5432", "127.0.0.1:5432", "[::1]:6379"]) == (
        ServiceEndpoint("127.0.0.1", 5432, ("127.0.0.1",), must=True),
        ServiceEndpoint("::1", 6379, ("::1",), must=True),
    )
    assert [each.address for each in endpoints(["localhost:5432"])] == ["127.0.0.1", "::1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "service",
    [
        *("", ":5432", "5432", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80"),
        *("10.0.0.1:5432", "0.0.0.0:5432", "example.org:5432", "127.0.0.1:54x", "127.0.0.1:٥٤٣٢", "a,b:5432"),
        *("127.0.0.1,1,must:5432", "[::1%lo]:5432", "[127.0.0.1:5432", "127.0.0.1;true:5432"),
    ],
)
def test_what_a_service_may_not_be(box: Box, service: str) -> None:
    with pytest.raises(ConfigError) as raised:
        box.run("", service)
    assert raised.value.remedy


def test_there_may_be_sixteen_services() -> None:
    names = [at(port) for port in range(5000, 5017)]
    assert len(endpoints(names[:16])) == 16
    with pytest.raises(ConfigError, match="17 services"):
        endpoints(names)
