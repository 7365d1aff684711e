"""A script inside the sandbox: forward connections to a loopback port to a socket file of the host's relay.

The target's interpreter runs it, so it needs only the standard library of Python 3.8. Its arguments are the folder of
the socket files and, for each file in order, `address,port,must` (or `may`, if the sandbox may lack the address).

It exits when all ports listen and the relay knows it. A child process stays and forwards until the sandbox ends. If a
port cannot listen, it exits with 1 and writes a line to standard error.
"""

from __future__ import annotations

import os
import resource
import selectors
import socket
import sys

CHUNK = 1 << 16
MOST_PENDING = 1 << 18
MOST_CONNECTIONS = 256
SPARE_FILES = 64


class ForwardedSocket:
    """One of the two sockets of a connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.other = self
        self.pending = bytearray()
        """What came from the other side and could not be sent yet."""
        self.is_reading = True
        self.is_finished = False
        """Whether this side has been told that nothing more will come."""
        self.watched_events = 0

    def get_wanted_events(self) -> int:
        reads = self.is_reading and len(self.other.pending) < MOST_PENDING
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if self.pending else 0)

    def receive(self) -> None:
        data = self.sock.recv(CHUNK)
        self.is_reading = bool(data)
        self.other.pending += data

    def flush(self) -> None:
        """Send what can be sent now. If the other side has closed, close this side after the last byte."""
        if self.pending:
            try:
                del self.pending[: self.sock.send(self.pending)]
            except BlockingIOError:
                return
        if not self.pending and not self.other.is_reading and not self.is_finished:
            self.is_finished = True
            self.sock.shutdown(socket.SHUT_WR)


class Forwarder:
    def __init__(self, listeners: list[tuple[socket.socket, str]]) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._max_connections = (
            MOST_CONNECTIONS if files < 0 else min(MOST_CONNECTIONS, max((files - SPARE_FILES) // 2, 1))
        )
        self._open = 0
        self._selector = selectors.DefaultSelector()
        for listener, path in listeners:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, path)

    def serve(self) -> None:
        while True:
            for key, events in self._selector.select():
                if isinstance(key.data, ForwardedSocket):
                    self._move(key.data, events)
                elif isinstance(key.fileobj, socket.socket):
                    self._accept(key.fileobj, key.data)

    def _accept(self, listener: socket.socket, path: str) -> None:
        try:
            client = listener.accept()[0]
        except OSError:  # it has gone again
            return
        host = socket.socket(socket.AF_UNIX)
        try:
            if self._open >= self._max_connections:
                raise OSError("too many connections")
            host.connect(path)
        except OSError:
            host.close()
            client.close()
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client_side, host_side = ForwardedSocket(client), ForwardedSocket(host)
        client_side.other, host_side.other = host_side, client_side
        self._open += 1
        self._watch(client_side)
        self._watch(host_side)

    def _move(self, side: ForwardedSocket, events: int) -> None:
        if side.sock.fileno() < 0:  # closed by an earlier event of the same round
            return
        try:
            if events & selectors.EVENT_WRITE:
                side.flush()
            if events & selectors.EVENT_READ:
                side.receive()
                side.other.flush()
        except BlockingIOError:
            pass
        except OSError:
            self._close(side)
            return
        if side.is_finished and side.other.is_finished:
            self._close(side)
            return
        self._watch(side)
        self._watch(side.other)

    def _watch(self, side: ForwardedSocket) -> None:
        events = side.get_wanted_events()
        if events and side.watched_events:
            self._selector.modify(side.sock, events, side)
        elif events:
            self._selector.register(side.sock, events, side)
        elif side.watched_events:
            self._selector.unregister(side.sock)
        side.watched_events = events

    def _close(self, side: ForwardedSocket) -> None:
        for endpoint in (side, side.other):
            if endpoint.watched_events:
                self._selector.unregister(endpoint.sock)
            endpoint.sock.close()
        self._open -= 1


def listen(address: str, port: int) -> socket.socket:
    """Listen on the address. Raises `OSError` if the sandbox has no such address."""
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(MOST_CONNECTIONS)
    except OSError:
        listener.close()
        raise
    return listener


def report_ready(path: str) -> None:
    """Tell the host that all ports listen, and wait until it confirms."""
    with socket.socket(socket.AF_UNIX) as ready:
        ready.connect(path)
        ready.recv(1)


def detach() -> None:
    """Detach the child process: no signal to the command's group reaches it, and it holds none of its descriptors."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def main(folder: str, *services: str) -> None:
    listeners: list[tuple[socket.socket, str]] = []
    for number, service in enumerate(services):
        address, port, requirement = service.split(",")
        try:
            listeners.append((listen(address, int(port)), f"{folder}/{number}"))
        except OSError as error:
            if requirement == "must":
                sys.exit(f"no service can be offered at {address} port {port}: {error}")
    report_ready(f"{folder}/ready")
    detach()
    Forwarder(listeners).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
