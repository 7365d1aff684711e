"""A proxy for a model on loopback: it forwards every question and counts the traffic."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SECONDS = 600
MOST = 500
"""Token limit of an answer, the same for every agent: without a limit a small model copies its prompt."""


@dataclass
class Counted:
    calls: int = 0
    prompt: int = 0
    answer: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, reply: bytes) -> None:
        try:
            used: dict[str, Any] = json.loads(reply).get("usage") or {}
        except ValueError:
            used = {}
        with self.lock:
            self.calls += 1
            self.prompt += int(used.get("prompt_tokens", 0))
            self.answer += int(used.get("completion_tokens", 0))


@contextmanager
def serve_counting_proxy(url: str) -> Generator[tuple[str, Counted]]:
    """Serve a proxy; yield its address and the counts. Answers come complete, never as a stream.

    A question that is open at the end is aborted and awaited, so that the model is free for the next agent.
    """
    counts, place = Counted(), urlsplit(url)
    open_connections: set[HTTPConnection] = set()

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            body |= {"stream": False, "max_tokens": min(int(body.get("max_tokens") or MOST), MOST)}
            body.pop("stream_options", None)
            model = HTTPConnection(place.hostname or "", place.port, timeout=SECONDS)
            open_connections.add(model)
            with suppress(OSError, HTTPException):
                model.request("POST", self.path, json.dumps(body).encode(), {"Content-Type": "application/json"})
                response = model.getresponse()
                self._give(response.status, response.read())
            open_connections.discard(model)
            model.close()

        def _give(self, status: int, content: bytes) -> None:
            counts.add(content)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base class sets the name)
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", counts
    finally:
        server.shutdown()
        for model in tuple(open_connections):
            with suppress(OSError, AttributeError):
                model.sock.shutdown(socket.SHUT_RDWR)
        server.server_close()
        thread.join()
