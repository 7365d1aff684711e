"""Faults of endpoints, on both wires: each has its class, none exceeds its deadline, none is retried."""

from __future__ import annotations

import asyncio
import time

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Usage
from redstart.core.errors import ModelBusy, ModelError, ModelGarbled, ModelRefused, ModelTimeout, ModelUnreachable
from redstart.ports.model.port import Model
from redstart.ports.model.providers import connect
from support.server import Reply, Request, ScriptedServer, Wire

pytestmark = pytest.mark.slow

KEY = "key-0123456789"
DEADLINE = 0.6
PATIENT = 120.0
"""For faults that must be reported at once: a test fails if its fault is reported only at the deadline."""

ASK = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="Why is it red?"),))

MOST = Usage(input_tokens=25, output_tokens=4096)
"""The most that the question can use: 5 tokens of text at 3 characters each, and what the wire adds."""

HTML = b"<!doctype html><html><body>Sign in to the wireless network</body></html>"
WRONG_TYPES = b'{"choices": "none", "content": 7, "stop_reason": ["end_turn"], "usage": null}'


def connect_model(server: ScriptedServer, wire: Wire, deadline: float) -> Model:
    if wire is Wire.openai:
        return connect("openai:gpt-4o", base_url=server.openai_url, api_key=KEY, deadline=deadline)
    return connect("anthropic:claude-sonnet-4-6", base_url=server.anthropic_url, api_key=KEY, deadline=deadline)


@pytest.fixture(params=list(Wire), scope="module")
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return a wire that was used once, so that no test waits for its SDK to load."""
    with ScriptedServer(lambda _: "ready") as server:
        asyncio.run(connect_model(server, request.param, PATIENT).ask(ASK))
    return request.param


def catch_error(reply: Reply, wire: Wire, deadline: float = PATIENT) -> tuple[ModelError, float]:
    with ScriptedServer(lambda _: reply) as server:
        model = connect_model(server, wire, deadline)
        start = time.monotonic()
        with pytest.raises(ModelError) as caught:
            asyncio.run(model.ask(ASK))
        elapsed = time.monotonic() - start
        assert len(server.requests) <= 1, "the call was made again"
    message = f"{caught.value} {caught.value.remedy}"
    assert KEY not in message
    assert caught.value.__cause__ is None, "the cause contains the request, and with it the key"
    assert "openai:gpt-4o" in message or "anthropic:claude-sonnet-4-6" in message
    assert len(str(caught.value)) < 350
    error = caught.value
    if error.usage.output_tokens == ASK.max_tokens:
        assert error.usage.usd, "the maximum cost is known"
        error.usage = MOST
    return error, elapsed


@pytest.mark.parametrize(
    ("status", "remedy", "kind"),
    [
        (400, "", ModelRefused),
        (401, "API_KEY", ModelRefused),
        (403, "API_KEY", ModelRefused),
        (404, "model's name", ModelRefused),
        (413, "", ModelRefused),
        (408, "", ModelBusy),
        (429, "after 7 s", ModelBusy),
        (500, "try again later", ModelBusy),
        (503, "try again later", ModelBusy),
        (529, "try again later", ModelBusy),
    ],
)
def test_refusal_names_its_status_and_what_to_do(status: int, remedy: str, kind: type[ModelError], wire: Wire) -> None:
    reply = Reply(status=status, text=f"no, {KEY} is wrong", headers={"Retry-After": "7", "x-should-retry": "true"})
    error, elapsed = catch_error(reply, wire)
    assert f"status {status}" in str(error)
    assert "no, *** is wrong" in str(error)
    assert remedy in error.remedy
    assert type(error) is kind
    assert error.retry_after == 7
    assert error.usage == Usage(), "a call that was refused costs nothing"
    assert elapsed < PATIENT / 2


@pytest.mark.parametrize("header", ["soon", "-5", "nan", "inf", "1e400"])
def test_invalid_retry_after_is_ignored(header: str, wire: Wire) -> None:
    error, _ = catch_error(Reply(status=429, headers={"Retry-After": header}), wire)
    assert type(error) is ModelBusy
    assert error.retry_after is None or error.retry_after == 0


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(hang=True), id="hang at the start"),
        pytest.param(Reply("x" * 100, hang_after=40), id="hang in the middle"),
        pytest.param(Reply("x" * 100, hang_after=0), id="hang after the head"),
        pytest.param(Reply("x" * 1000, drip=0.05), id="drip"),
    ],
)
def test_call_ends_at_its_deadline(reply: Reply, wire: Wire) -> None:
    error, elapsed = catch_error(reply, wire, DEADLINE)
    assert "did not answer within 0.6 s" in str(error)
    assert type(error) is ModelTimeout
    assert error.usage == MOST
    assert DEADLINE * 0.9 < elapsed < DEADLINE + 5.0  # the margin is for a busy machine


def test_reset_connection_is_unreachable(wire: Wire) -> None:
    error, elapsed = catch_error(Reply(drop=True), wire)
    assert "cannot be reached" in str(error)
    assert type(error) is ModelUnreachable
    assert error.usage == MOST, "it was sent, and may have been answered"
    assert elapsed < PATIENT / 2


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(body=HTML, headers={"Content-Type": "text/html"}), id="HTML"),
        pytest.param(Reply(body=HTML), id="HTML that says it is JSON"),
        pytest.param(Reply(body=b'{"id": "x", "choices": [{"index": 0, "mess'), id="cut JSON"),
        pytest.param(Reply(body=b"{}"), id="an empty object"),
        pytest.param(Reply(body=b""), id="nothing"),
        pytest.param(Reply(body=b"null"), id="null"),
        pytest.param(Reply(body=b"[1, 2]"), id="a list"),
        pytest.param(Reply(body=b"\x00\xff\xfe\x80" * 50), id="garbage"),
        pytest.param(Reply(body=WRONG_TYPES), id="wrong types"),
        pytest.param(Reply(body=b"{}", status=302, headers={"Location": "http://127.0.0.1:9/"}), id="a redirect"),
    ],
)
def test_malformed_reply_is_garbled(reply: Reply, wire: Wire) -> None:
    error, elapsed = catch_error(reply, wire)
    assert "sent an invalid response" in str(error)
    assert type(error) is ModelGarbled
    assert error.usage == MOST
    assert elapsed < PATIENT / 2


@pytest.mark.parametrize("finish", [None, "", "banana"])
def test_answer_without_a_finish_reason_is_garbled(finish: str | None, wire: Wire) -> None:
    error, _ = catch_error(Reply("plausible text", finish=finish), wire)
    assert "unfinished answer" in str(error) or "invalid response" in str(error)
    assert type(error) is ModelGarbled
    assert error.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (Reply("half of", finish="length"), AnswerFault.truncated),
        (Reply("", finish="length"), AnswerFault.truncated),
        (Reply("", finish="content_filter"), AnswerFault.refused),
        (Reply("I started", finish="content_filter"), AnswerFault.refused),
        (Reply(""), AnswerFault.empty),
        (Reply(" \n\t"), AnswerFault.empty),
    ],
)
def test_unusable_answer_keeps_its_text_and_fault(reply: Reply, fault: AnswerFault, wire: Wire) -> None:
    with ScriptedServer(lambda _: reply) as server:
        answer = asyncio.run(connect_model(server, wire, PATIENT).ask(ASK))
    assert (answer.text, answer.fault) == (reply.text, fault)
    assert answer.usage.input_tokens > 0
    assert answer.usage.usd


def test_closed_port_is_unreachable(wire: Wire) -> None:
    with ScriptedServer(lambda _: "") as server:
        model = connect_model(server, wire, PATIENT)
    with pytest.raises(ModelUnreachable, match="cannot be reached") as caught:
        asyncio.run(model.ask(ASK))
    assert "address" in caught.value.remedy
    assert caught.value.usage == Usage(), "nothing was sent"


def test_slow_answer_within_the_deadline_is_accepted(wire: Wire) -> None:
    with ScriptedServer(lambda _: Reply("slow", drip=0.001)) as server:
        answer = asyncio.run(connect_model(server, wire, PATIENT).ask(ASK))
    assert answer.text == "slow"


def test_hanging_call_does_not_block_other_calls(wire: Wire) -> None:
    async def ask_both(model: Model) -> list[Answer | BaseException]:
        quick_ask = ASK.model_copy(update={"messages": (Message(role=Role.user, text="quick"),)})
        return await asyncio.gather(model.ask(ASK), model.ask(quick_ask), return_exceptions=True)

    with ScriptedServer(lambda request: "quick" if "quick" in request.text else Reply(hang=True)) as server:
        hung, quick = asyncio.run(ask_both(connect_model(server, wire, DEADLINE)))
        if not isinstance(quick, Answer):  # on a busy machine even the quick call may be late
            hung, quick = asyncio.run(ask_both(connect_model(server, wire, 20 * DEADLINE)))
    assert isinstance(hung, ModelError)
    assert isinstance(quick, Answer)


def test_cancelled_call_raises_no_model_error(wire: Wire) -> None:
    async def give_up() -> None:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def reply(_: Request) -> Reply:
            loop.call_soon_threadsafe(arrived.set)
            return Reply(hang=True)

        with ScriptedServer(reply) as server:
            call = asyncio.create_task(connect_model(server, wire, PATIENT).ask(ASK))
            await arrived.wait()
            call.cancel()
            await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(give_up())
