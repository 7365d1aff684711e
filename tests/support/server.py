"""A real HTTP server that acts as a model provider: OpenAI's chat completions and embeddings, Anthropic's messages.

It does not stream.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

from redstart.core.chat import ToolCall
from redstart.ports.memory.hashing import embed_text


class Wire(StrEnum):
    openai = "openai"
    anthropic = "anthropic"


_PATHS = {
    "/v1/chat/completions": Wire.openai,
    "/openai/v1/chat/completions": Wire.openai,
    "/v1/messages": Wire.anthropic,
    "/v1/embeddings": Wire.openai,
}

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
}
"""Anthropic's stop reasons by OpenAI's finish reasons."""


@dataclass
class Request:
    """A request of a client."""

    wire: Wire
    model: str
    system: str
    messages: tuple[tuple[str, str], ...]
    """Role and text of each turn, without system turns."""
    max_tokens: int | None
    body: dict[str, Any]
    headers: Mapping[str, str]
    """By lower-case name."""
    texts: tuple[str, ...] | None = None
    """The texts to embed; None for a chat request."""
    answered: bool = False
    """Whether all of the reply was sent."""
    counted: tuple[int, int] = (0, 0)
    """The tokens of prompt and completion that the reply reports; zero if it is broken off or not an answer."""

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the offered tools."""
        tool_definitions = cast("list[dict[str, Any]]", self.body.get("tools") or [])
        return tuple(
            tool["function"]["name"] if self.wire is Wire.openai else tool["name"] for tool in tool_definitions
        )

    @property
    def text(self) -> str:
        """All text of the request, in order."""
        return "\n".join((self.system, *(text for _, text in self.messages), *(self.texts or ())))


@dataclass(frozen=True)
class Reply:
    """A scripted reply. Each field but `text` can make it difficult."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls in addition to the text. Anthropic's wire cannot send arguments that are not JSON."""
    finish: str | None = "stop"
    """OpenAI's finish reason; None omits it. For a reply with tool calls, `stop` is sent as `tool_calls`."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    """Raw bytes that replace a proper body."""
    usage: bool = True
    """Whether the reply reports token usage."""
    places: Sequence[Sequence[float]] | None = None
    """The embedding vectors of the texts; None for those of the built-in embedder."""
    model: str = ""
    """The model name in the reply to an embedding request, if it differs from the requested one."""
    cached_tokens: int = 0
    """The prompt tokens that came from the provider's cache."""
    written_tokens: int = 0
    """The prompt tokens written to the cache; only Anthropic's wire counts them."""
    hang: bool = False
    """Send nothing; hold the connection until the server closes."""
    hang_after: int | None = None
    """Send this many bytes of the body, then hang."""
    drip: float | None = None
    """Send the body byte by byte, with this many seconds in between."""
    wait: threading.Event | None = None
    """Reply when this event is set."""
    drop: bool = False
    """Reset the connection instead of replying."""

    @property
    def counts(self) -> bool:
        """Whether the client receives a complete reply with token usage."""
        is_broken = self.hang or self.drop or self.hang_after is not None or self.drip is not None
        return self.usage and self.body is None and self.status < 400 and not is_broken


Script = Callable[[Request], "str | Reply"]


class ScriptedServer:
    """Serves on a free port of 127.0.0.1 while it is entered. `reply` is called in a separate thread per request.

    An exception from `reply` is sent to the client as status 500 and raised again on exit.
    """

    def __init__(self, reply: Script) -> None:
        self._reply = reply
        self._requests: list[Request] = []
        self._errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def openai_url(self) -> str:
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def requests(self) -> list[Request]:
        """The requests received so far, in order."""
        with self._lock:
            return list(self._requests)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        if self._errors and error is None:
            raise self._errors[0]

    def exchange(self, request: Request, handler: _Handler) -> None:
        """Answer one request on the handler's connection."""
        with self._lock:
            self._requests.append(request)
        try:
            scripted = self._reply(request)
        except BaseException as error:
            self.record_error(error)
            scripted = Reply(status=500, text=f"the script raised {type(error).__name__}: {error}")
        reply = Reply(text=scripted) if isinstance(scripted, str) else scripted
        if reply.counts:
            # Set it before sending: the recipient of the reply may look at once.
            request.counted = _count_tokens(request, reply)
        if handler.send(request, reply, self._closing):
            with self._lock:
                request.answered = True

    def record_error(self, error: BaseException) -> None:
        with self._lock:
            self._errors.append(error)


class _Server(ThreadingHTTPServer):
    # Threads are joined on close, so that no socket outlives the server.
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, owner: ScriptedServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that disconnects; real errors were recorded by `exchange`."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_POST(self) -> None:
        self.close_connection = True
        owner = cast("_Server", self.server).owner
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        wire = _PATHS.get(self.path)
        if wire is None:
            self._send_body(404, {}, json.dumps({"error": {"message": f"no such path: {self.path}"}}).encode())
            return
        try:
            request = _parse(wire, json.loads(raw), {name.lower(): value for name, value in self.headers.items()})
        except Exception as error:
            owner.record_error(error)
            raise
        owner.exchange(request, self)

    def send(self, request: Request, reply: Reply, closing: threading.Event) -> bool:
        """Send a reply; return whether all of it was sent."""
        if reply.wait is not None:
            while not reply.wait.wait(0.02) and not closing.is_set():
                pass
        if reply.hang:
            closing.wait()
            return False
        if reply.drop:
            # With a linger time of zero, close sends a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return False
        body = build_body(request, reply) if reply.body is None else reply.body
        self._send_head(reply.status, reply.headers, len(body))
        if reply.hang_after is not None:
            self.wfile.write(body[: reply.hang_after])
            closing.wait()
            return False
        if reply.drip is not None:
            for index in range(len(body)):
                self.wfile.write(body[index : index + 1])
                if closing.wait(reply.drip):
                    return False
            return True
        self.wfile.write(body)
        return True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""

    def _send_body(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self._send_head(status, headers, len(body))
        self.wfile.write(body)

    def _send_head(self, status: int, headers: Mapping[str, str], length: int) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()


def _parse(wire: Wire, body: dict[str, Any], headers: Mapping[str, str]) -> Request:
    embedding_input = body.get("input")
    raw_messages: list[dict[str, Any]] = body["messages"] if embedding_input is None else []
    turns = [(cast("str", turn["role"]), _join_text(turn.get("content"))) for turn in raw_messages]
    system = [_join_text(body.get("system") or "")] if wire is Wire.anthropic else []
    system += [text for role, text in turns if role in ("system", "developer")]
    return Request(
        wire=wire,
        model=body["model"],
        system="\n\n".join(text for text in system if text),
        messages=tuple(turn for turn in turns if turn[0] not in ("system", "developer")),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens"),
        body=body,
        headers=headers,
        texts=None
        if embedding_input is None
        else (embedding_input,)
        if isinstance(embedding_input, str)
        else tuple(embedding_input),
    )


def _join_text(content: str | list[dict[str, Any]] | None) -> str:
    """Return a turn's text: both wires send a string or a list of blocks; a turn with only tool calls has none."""
    if not isinstance(content, list):
        return content or ""
    return "".join(
        _join_text(block.get("content")) if block.get("type") == "tool_result" else block.get("text", "")
        for block in content
    )


def build_body(request: Request, reply: Reply) -> bytes:
    """Build the proper body of a reply for the request's wire."""
    if reply.status >= 400:
        error = {"type": "error", "message": reply.text or "refused by the script"}
        return json.dumps({"type": "error", "error": error}).encode()
    make = _build_completion if request.wire is Wire.openai else _build_message
    if request.texts is not None:
        make = _build_embeddings
    return json.dumps(make(request, reply, *_count_tokens(request, reply))).encode()


def _count_tokens(request: Request, reply: Reply) -> tuple[int, int]:
    output_text = reply.text + "".join(call.name + call.arguments for call in reply.calls)
    return -(-len(request.text) // 4), -(-len(output_text) // 4)


def _finish(reply: Reply) -> str | None:
    return "tool_calls" if reply.calls and reply.finish == "stop" else reply.finish


def _build_completion(request: Request, reply: Reply, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    usage = {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        message["content"] = reply.text or None
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply)}],
        **({"usage": usage} if reply.usage else {}),
    }


def _build_embeddings(request: Request, reply: Reply, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    del output_tokens
    places = [embed_text(text) for text in request.texts or ()] if reply.places is None else reply.places
    return {
        "object": "list",
        "model": reply.model or request.model,
        "data": [
            {"object": "embedding", "index": number, "embedding": list(place)} for number, place in enumerate(places)
        ],
        **({"usage": {"prompt_tokens": input_tokens, "total_tokens": input_tokens}} if reply.usage else {}),
    }


def _build_message(request: Request, reply: Reply, input_tokens: int, output_tokens: int) -> dict[str, Any]:
    # This wire counts tokens read from and written to the cache separately.
    usage = {
        "input_tokens": input_tokens - reply.cached_tokens - reply.written_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
        "cache_creation_input_tokens": reply.written_tokens,
        "output_tokens": output_tokens,
    }
    text = [{"type": "text", "text": reply.text}] if reply.text else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in reply.calls
    ]
    finish = _finish(reply)
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [*text, *calls],
        "stop_reason": _STOP_REASONS.get(finish, finish) if finish else None,
        "stop_sequence": None,
        "usage": usage if reply.usage else {"input_tokens": 0, "output_tokens": 0},
    }
