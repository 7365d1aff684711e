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


def test_both_wires_are_spoken_and_kept() -> None:
    with ScriptedServer(lambda request: f"to {request.text}") as server:
        completion = post(f"{server.openai_url}/chat/completions")
        message = post(f"{server.anthropic_url}/v1/messages", {**BODY, "system": "be brief"})
        first, second = server.requests
    assert completion["choices"][0]["message"]["content"] == "to \nhello"  # type: ignore[index]
    assert completion["usage"]["total_tokens"] == 5  # type: ignore[index]
    assert message["content"] == [{"type": "text", "text": "to be brief\nhello"}]
    assert (first.wire, second.wire) == (Wire.openai, Wire.anthropic)
    assert (second.system, second.messages, second.max_tokens) == ("be brief", (("user", "hello"),), 5)
    assert first.headers["x-mark"] == "7"
    assert first.answered
    assert second.answered


def test_a_reply_can_be_held_back() -> None:
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


def test_what_the_script_raises_is_raised_at_the_end() -> None:
    def reply(_: Request) -> str:
        raise ScriptEnded("one too many")

    def use() -> None:
        with ScriptedServer(reply) as server:
            with pytest.raises(urllib.error.HTTPError, match="500") as refused:
                post(f"{server.openai_url}/chat/completions")
            refused.value.close()

    with pytest.raises(ScriptEnded, match="one too many"):
        use()


def test_an_unknown_path_is_refused_and_not_kept() -> None:
    with ScriptedServer(lambda _: "") as server:
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            post(f"{server.openai_url}/responses")
        refused.value.close()
        assert server.requests == []
