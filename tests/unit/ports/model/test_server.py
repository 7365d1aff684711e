"""The scripted server that the other tests rely on."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request

import pytest

from redstart.testing.model import ScriptEnded
from support.server import Reply, Request, ScriptedServer, Wire

BODY = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}], "max_tokens": 5}


def post(url: str, body: object = BODY) -> dict[str, object]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, json.dumps(body).encode(), {"X-Mark": "7"}), timeout=60) as reply:
        return json.loads(reply.read())


def test_server_speaks_both_wire_formats_and_records_requests() -> None:
    with ScriptedServer(lambda request: f"to {request.text}") as server:
        completion = post(f"{server.openai_url}/chat/completions")
        message = post(f"{server.anthropic_url}/v1/messages", {**BODY, "system": "be brief"})
        first_request, second_request = server.requests
    assert completion["choices"][0]["message"]["content"] == "to \nhello"  # type: ignore[index]
    assert completion["usage"]["total_tokens"] == 5  # type: ignore[index]
    assert message["content"] == [{"type": "text", "text": "to be brief\nhello"}]
    assert (first_request.wire, second_request.wire) == (Wire.openai, Wire.anthropic)
    assert (second_request.system, second_request.messages, second_request.max_tokens) == (
        "be brief",
        (("user", "hello"),),
        5,
    )
    assert first_request.headers["x-mark"] == "7"
    assert first_request.answered
    assert second_request.answered


def test_reply_can_be_held_back() -> None:
    go, arrived = threading.Event(), threading.Event()

    def reply(_: Request) -> Reply:
        arrived.set()
        return Reply("late", wait=go)

    with ScriptedServer(reply) as server:
        client = threading.Thread(target=post, args=(f"{server.openai_url}/chat/completions",))
        client.start()
        assert arrived.wait(10)
        assert not server.requests[0].answered
        go.set()
        client.join()
    # Checked after the server's threads are joined: a client may have its reply before the server records it.
    assert server.requests[0].answered


def test_exception_in_the_script_is_raised_at_the_end() -> None:
    def reply(_: Request) -> str:
        raise ScriptEnded("one too many")

    def use() -> None:
        with ScriptedServer(reply) as server:
            with pytest.raises(urllib.error.HTTPError, match="500") as refused:
                post(f"{server.openai_url}/chat/completions")
            refused.value.close()

    with pytest.raises(ScriptEnded, match="one too many"):
        use()


def test_unknown_path_is_rejected_and_not_recorded() -> None:
    with ScriptedServer(lambda _: "") as server:
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            post(f"{server.openai_url}/responses")
        refused.value.close()
        assert server.requests == []
