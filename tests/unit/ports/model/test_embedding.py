"""An embedding model over real HTTP: its requests, how its answers are used, and the class of each fault."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence

import pytest

from redstart.core.chat import Usage
from redstart.core.errors import (
    BudgetExceeded,
    ConfigError,
    ModelBusy,
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelTimeout,
    ModelUnreachable,
)
from redstart.core.run import Limits, Spend
from redstart.ports.model.budget import RunLedger
from redstart.ports.model.embedding import (
    BATCH,
    COOLDOWN_SECONDS,
    LONGEST_TEXT,
    SIMILARITY_THRESHOLD,
    ApiEmbedder,
    EmbeddingOptions,
    refuse_unfit,
)
from redstart.ports.model.endpoints import resolve_address
from redstart.ports.model.port import Rates
from support.server import Reply, Request, Script, ScriptedServer

KEY = "key-0123456789"
NAME = "openai:text-embedding-3-small"
PATIENT = 20.0
HTML = b"<!doctype html><html><body>Sign in to the wireless network</body></html>"


def create_embedder(url: str, manner: EmbeddingOptions | None = None, *, name: str = NAME) -> ApiEmbedder:
    def reach() -> object:
        return refuse_unfit(resolve_address(name, base_url=url, api_key=KEY))

    return ApiEmbedder(reach, name, manner or EmbeddingOptions(deadline=PATIENT))  # pyright: ignore[reportArgumentType]


async def embed_texts(
    server: ScriptedServer, texts: Sequence[str], manner: EmbeddingOptions | None = None
) -> list[Sequence[float]]:
    return await create_embedder(server.openai_url, manner).embed(texts)


def reply_with_vector(*numbers: float) -> Script:
    return lambda request: Reply(places=[numbers] * len(request.texts or ()))


async def test_embeddings_are_requested_with_model_and_key_and_normalized() -> None:
    with ScriptedServer(reply_with_vector(3.0, 0.0, -4.0)) as server:
        api_embedder = create_embedder(server.openai_url)
        assert await api_embedder.embed(["one", "two"]) == [[0.6, 0.0, -0.8]] * 2
        (request,) = server.requests
    assert request.texts == ("one", "two")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "text-embedding-3-small", "input": ["one", "two"], "encoding_format": "float"}
    assert (api_embedder.dimension, api_embedder.near, api_embedder.remote) == (3, SIMILARITY_THRESHOLD, True)


async def test_many_texts_are_batched_and_keep_their_order() -> None:
    def reply_reversed(request: Request) -> Reply:
        rows = [{"index": number, "embedding": [float(text), 1.0]} for number, text in enumerate(request.texts or ())]
        return Reply(body=json.dumps({"data": rows[::-1], "model": request.model}).encode())

    texts = [str(number) for number in range(2 * BATCH + 5)]
    with ScriptedServer(reply_reversed) as server:
        vectors = await embed_texts(server, texts)
        assert [len(request.texts or ()) for request in server.requests] == [BATCH, BATCH, 5]
    assert [round(item / scale) for item, scale in vectors] == list(range(len(texts)))


async def test_embeddings_without_an_index_are_taken_in_order() -> None:
    body = json.dumps({"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]}).encode()
    with ScriptedServer(lambda _: Reply(body=body)) as server:
        assert await embed_texts(server, ["a", "b"]) == [[1, 0], [0, 1]]


async def test_blank_text_is_not_sent_and_has_a_zero_embedding() -> None:
    with ScriptedServer(reply_with_vector(0.0, 2.0)) as server:
        assert await embed_texts(server, ["", "word", " \n"]) == [[0, 0], [0, 1], [0, 0]]
        assert [request.texts for request in server.requests] == [("word",)]
        assert not any(map(any, await embed_texts(server, ["", " "])))
        assert len(server.requests) == 1


async def test_sent_texts_are_masked_and_truncated() -> None:
    fake_key = "AKIA" + "QX7ZJ2M4N6P8R3TW"
    with ScriptedServer(reply_with_vector(1.0)) as server:
        manner = EmbeddingOptions(deadline=PATIENT, secrets={"correct horse battery": "shop_password"})
        await embed_texts(server, [f"no entry: correct horse battery and {fake_key}", "word " * 5000], manner)
        (request,) = server.requests
    first_text, second_text = request.texts or ()
    assert first_text.startswith("no entry: ")
    assert "horse" not in first_text
    assert fake_key not in first_text
    assert 1000 < len(second_text.encode()) <= LONGEST_TEXT


async def test_fewer_dimensions_are_requested_when_configured() -> None:
    with ScriptedServer(reply_with_vector(3.0, 4.0)) as server:
        assert await embed_texts(server, ["a"], EmbeddingOptions(deadline=PATIENT, dimensions=2)) == [[0.6, 0.8]]
        assert server.requests[0].body["dimensions"] == 2
        with pytest.raises(ModelGarbled, match="2 numbers instead of 8"):
            await embed_texts(server, ["a"], EmbeddingOptions(deadline=PATIENT, dimensions=8))


async def get_embedder_name(url: str, script: Script, name: str = NAME) -> str:
    del script
    api_embedder = create_embedder(url, name=name)
    await api_embedder.embed(["a"])
    return api_embedder.name


async def test_embedder_name_depends_on_model_size_and_address() -> None:
    replies = [
        reply_with_vector(1.0),
        reply_with_vector(1.0, 1.0),
        lambda _: Reply(places=[[1.0]], model="text-embedding-9"),
        reply_with_vector(1.0),
    ]
    script = iter(replies)
    with (
        ScriptedServer(lambda request: next(script)(request)) as server,
        ScriptedServer(reply_with_vector(1.0)) as other_server,
    ):
        base_name, longer_name, other_model_name, repeated_name = [
            await get_embedder_name(server.openai_url, reply) for reply in replies
        ]
        other_server_name = await get_embedder_name(other_server.openai_url, reply_with_vector(1.0))
    assert base_name == repeated_name
    assert base_name.startswith(f"{NAME}/1~")
    assert longer_name.startswith(f"{NAME}/2~")
    assert len({base_name, longer_name, other_model_name, other_server_name}) == 4
    assert "127.0.0.1" not in base_name


@pytest.mark.parametrize("later_reply", [Reply(places=[[1.0, 2.0]]), Reply(places=[[1.0]], model="another")])
async def test_answer_that_differs_in_kind_from_the_previous_one_is_rejected(later_reply: Reply) -> None:
    replies = iter([Reply(places=[[1.0]]), later_reply, later_reply])
    with ScriptedServer(lambda _: next(replies)) as server:
        api_embedder = create_embedder(server.openai_url)
        await api_embedder.embed(["a"])
        name_before = api_embedder.name
        with pytest.raises(ModelGarbled, match="than before"):
            await api_embedder.embed(["a"])
        assert api_embedder.name == name_before
        new_embedder = api_embedder.with_meter(RunLedger(Limits(), Spend()))
        await new_embedder.embed(["a"])
        assert new_embedder.name != name_before


def encode_vectors(*vectors: object) -> bytes:
    rows = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return json.dumps({"data": rows}).encode()


@pytest.mark.parametrize(
    "body",
    [
        HTML,
        b"",
        b"null",
        b"[]",
        b'{"data": null}',
        b'{"data": []}',
        b'{"choices": [{"message": {"content": "hello"}}]}',
        encode_vectors([1.0]),
        encode_vectors([1.0], [1.0], [1.0]),
        encode_vectors([1.0], [1.0, 2.0]),
        encode_vectors([], []),
        encode_vectors([1.0], [math.nan]),
        encode_vectors([1.0], [math.inf]),
        encode_vectors([1.0], [None]),
        encode_vectors([1.0], ["x"]),
        encode_vectors([1.0], [0.0]),
        encode_vectors([1e308] * 9, [1.0] * 9),
        encode_vectors([1.0], "AACAPw=="),
        encode_vectors([1.0] * 16_001, [1.0] * 16_001),
        json.dumps({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}).encode(),
        json.dumps({"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}).encode(),
        json.dumps({"data": [{"embedding": [1]}, {"embedding": [1]}], "usage": {"prompt_tokens": -5}}).encode(),
    ],
)
async def test_invalid_answer_is_garbled(body: bytes) -> None:
    error = await catch_error(Reply(body=body), ModelGarbled)
    assert error.usage.input_tokens > 0, "it may have been paid for"


async def catch_error(reply: Reply, kind: type[ModelError], deadline: float = PATIENT) -> ModelError:
    with ScriptedServer(lambda _: reply) as server:
        api_embedder, began = create_embedder(server.openai_url, EmbeddingOptions(deadline=deadline)), time.monotonic()
        with pytest.raises(ModelError) as caught:
            await api_embedder.embed(["one", "two"])
        assert time.monotonic() - began < PATIENT
        assert len(server.requests) == 1
    error = caught.value
    assert type(error) is kind
    assert KEY not in f"{error} {error.remedy}"
    assert error.__cause__ is None, "the cause contains the request, and with it the key"
    assert NAME in str(error)
    assert len(str(error)) < 350
    return error


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(hang_after=5), Reply(drip=0.2)])
async def test_late_answer_is_a_timeout(reply: Reply) -> None:
    assert (await catch_error(reply, ModelTimeout, deadline=0.5)).usage.input_tokens > 0


@pytest.mark.parametrize(
    ("status", "kind", "remedy"),
    [
        (400, ModelRefused, ""),
        (401, ModelRefused, "OPENAI_API_KEY"),
        (404, ModelRefused, "name and address"),
        (302, ModelRefused, ""),
        (429, ModelBusy, "rate limit or quota"),
        (503, ModelBusy, "down or overloaded"),
    ],
)
async def test_refusal_carries_the_message_of_the_endpoint(status: int, kind: type[ModelError], remedy: str) -> None:
    reply = Reply(status=status, body=json.dumps({"error": {"message": f"not with {KEY}"}}).encode())
    error = await catch_error(reply, kind)
    assert "not with ***" in str(error)
    assert remedy in error.remedy
    assert error.usage == Usage()


async def test_broken_connection_is_unreachable_and_a_refused_one_costs_nothing() -> None:
    assert (await catch_error(Reply(drop=True), ModelUnreachable)).usage.input_tokens > 0
    with ScriptedServer(reply_with_vector(1.0)) as server:
        closed_url = server.openai_url
    with pytest.raises(ModelUnreachable) as caught:
        await create_embedder(closed_url).embed(["a"])
    assert caught.value.usage == Usage()


async def test_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redstart.ports.model.embedding._LONGEST_ANSWER", 1 << 20)
    assert "MB" in str(await catch_error(Reply(body=b" " * (1 << 20) + encode_vectors([1.0], [1.0])), ModelGarbled))


@pytest.mark.parametrize("bad_reply", [Reply(hang=True), Reply(status=503)])
async def test_unresponsive_endpoint_is_skipped_in_every_run_for_a_while(
    bad_reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [1000.0]
    monkeypatch.setattr("redstart.ports.model.embedding.monotonic", lambda: moments[-1])
    replies = [bad_reply, Reply(places=[(1.0,)]), Reply(places=[(1.0,)])]
    with ScriptedServer(lambda _: replies.pop(0)) as server:
        first_embedder = create_embedder(
            server.openai_url, EmbeddingOptions(deadline=0.5 if bad_reply.hang else PATIENT)
        )
        with pytest.raises(ModelError):
            await first_embedder.embed(["one"])
        second_embedder = first_embedder.with_meter(RunLedger(Limits(), Spend()))
        with pytest.raises(ModelBusy, match="not asked for now"):
            await second_embedder.embed(["one"])
        assert len(server.requests) == 1
        moments.append(moments[-1] + COOLDOWN_SECONDS)
        assert await second_embedder.embed(["one"]) == [[1.0]]
        assert await second_embedder.embed(["two"]) == [[1.0]]


async def test_endpoint_that_refuses_is_asked_every_time() -> None:
    with ScriptedServer(lambda _: Reply(status=401)) as server:
        api_embedder = create_embedder(server.openai_url)
        for _ in range(2):
            with pytest.raises(ModelRefused):
                await api_embedder.embed(["one"])
        assert len(server.requests) == 2


async def test_embedding_usage_is_reserved_and_settled() -> None:
    ledger = RunLedger(Limits(tokens=1000, usd=1.0), Spend())
    with ScriptedServer(reply_with_vector(1.0)) as server:
        api_embedder = create_embedder(
            server.openai_url, EmbeddingOptions(deadline=PATIENT, rates=Rates(input=1000.0, output=0))
        ).with_meter(ledger)
        await api_embedder.embed(["word " * 40])
        (token_count,) = [request.counted[0] for request in server.requests]
        assert 50 <= token_count < 55
        ledger.reserve(0.0, 1000 - token_count)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(0.0, 1)
        with pytest.raises(BudgetExceeded):
            await api_embedder.embed(["word"])
        assert len(server.requests) == 1, "a request beyond the budget is not sent"
    ledger.settle(0.0, 1000 - token_count, Usage())
    ledger.reserve(1.0 - token_count / 1000, 0)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(0.01, 0)


async def test_missing_usage_counts_as_the_maximum() -> None:
    ledger = RunLedger(Limits(tokens=100), Spend())
    with ScriptedServer(lambda _: Reply(places=[[1.0]], usage=False)) as server:
        await create_embedder(server.openai_url).with_meter(ledger).embed(["a" * 60])
    ledger.reserve(None, 60)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(None, 1)


async def test_provider_without_embeddings_is_a_settings_error() -> None:
    with pytest.raises(ConfigError, match="Anthropic"):
        await create_embedder("http://127.0.0.1:9", name="anthropic:claude").embed(["a"])
