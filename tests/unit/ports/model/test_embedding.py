"""An embedding model over real HTTP: its requests, how its answers are used, and the class of each fault."""

from __future__ import annotations

import asyncio
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
from redstart.ports.model.embedding import BATCH, LONGEST_TEXT, NEAR, REST, ApiEmbedder, EmbeddingOptions, refuse_unfit
from redstart.ports.model.endpoints import address
from redstart.ports.model.port import Rates
from support.server import Reply, Request, Script, ScriptedServer

KEY = "key-0123456789"
NAME = "openai:text-embedding-3-small"
PATIENT = 20.0
HTML = b"<!doctype html><html><body>Sign in to the wireless network</body></html>"


def embedder(url: str, manner: EmbeddingOptions | None = None, *, name: str = NAME) -> ApiEmbedder:
    def reach() -> object:
        return refuse_unfit(address(name, base_url=url, api_key=KEY))

    return ApiEmbedder(reach, name, manner or EmbeddingOptions(deadline=PATIENT))  # pyright: ignore[reportArgumentType]


def places(
    server: ScriptedServer, texts: Sequence[str], manner: EmbeddingOptions | None = None
) -> list[Sequence[float]]:
    return asyncio.run(embedder(server.openai_url, manner).embed(texts))


def fixed(*numbers: float) -> Script:
    return lambda request: Reply(places=[numbers] * len(request.texts or ()))


def test_places_are_asked_for_by_model_and_key_and_are_as_long_as_1() -> None:
    with ScriptedServer(fixed(3.0, 0.0, -4.0)) as server:
        mine = embedder(server.openai_url)
        assert asyncio.run(mine.embed(["one", "two"])) == [[0.6, 0.0, -0.8]] * 2
        (request,) = server.requests
    assert request.texts == ("one", "two")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "text-embedding-3-small", "input": ["one", "two"], "encoding_format": "float"}
    assert (mine.dimension, mine.near, mine.remote) == (3, NEAR, True)


def test_many_texts_go_in_batches_and_come_back_in_their_order() -> None:
    def backwards(request: Request) -> Reply:
        given = [{"index": number, "embedding": [float(text), 1.0]} for number, text in enumerate(request.texts or ())]
        return Reply(body=json.dumps({"data": given[::-1], "model": request.model}).encode())

    texts = [str(number) for number in range(2 * BATCH + 5)]
    with ScriptedServer(backwards) as server:
        found = places(server, texts)
        assert [len(request.texts or ()) for request in server.requests] == [BATCH, BATCH, 5]
    assert [round(item / other) for item, other in found] == list(range(len(texts)))


def test_without_numbers_the_order_of_the_answer_counts() -> None:
    body = json.dumps({"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]}).encode()
    with ScriptedServer(lambda _: Reply(body=body)) as server:
        assert places(server, ["a", "b"]) == [[1, 0], [0, 1]]


def test_what_says_nothing_is_not_sent_and_is_nowhere() -> None:
    with ScriptedServer(fixed(0.0, 2.0)) as server:
        assert places(server, ["", "word", " \n"]) == [[0, 0], [0, 1], [0, 0]]
        assert [request.texts for request in server.requests] == [("word",)]
        assert not any(map(any, places(server, ["", " "])))
        assert len(server.requests) == 1


def test_no_secret_leaves_and_no_text_is_longer_than_models_take() -> None:
    shaped = "AKIA" + "QX7ZJ2M4N6P8R3TW"
    with ScriptedServer(fixed(1.0)) as server:
        manner = EmbeddingOptions(deadline=PATIENT, secrets={"correct horse battery": "shop_password"})
        places(server, [f"no entry: correct horse battery and {shaped}", "word " * 5000], manner)
        (request,) = server.requests
    first, second = request.texts or ()
    assert first.startswith("no entry: ")
    assert "horse" not in first
    assert shaped not in first
    assert 1000 < len(second.encode()) <= LONGEST_TEXT


def test_fewer_numbers_are_asked_for_where_that_is_set() -> None:
    with ScriptedServer(fixed(3.0, 4.0)) as server:
        assert places(server, ["a"], EmbeddingOptions(deadline=PATIENT, dimensions=2)) == [[0.6, 0.8]]
        assert server.requests[0].body["dimensions"] == 2
        with pytest.raises(ModelGarbled, match="2 numbers instead of 8"):
            places(server, ["a"], EmbeddingOptions(deadline=PATIENT, dimensions=8))


def names(url: str, script: Script, name: str = NAME) -> str:
    del script
    mine = embedder(url, name=name)
    asyncio.run(mine.embed(["a"]))
    return mine.name


def test_another_model_size_or_address_has_another_name() -> None:
    said = [fixed(1.0), fixed(1.0, 1.0), lambda _: Reply(places=[[1.0]], model="text-embedding-9"), fixed(1.0)]
    script = iter(said)
    with ScriptedServer(lambda request: next(script)(request)) as server, ScriptedServer(fixed(1.0)) as elsewhere:
        one, longer, renamed, again = [names(server.openai_url, each) for each in said]
        moved = names(elsewhere.openai_url, fixed(1.0))
    assert one == again
    assert one.startswith(f"{NAME}/1~")
    assert longer.startswith(f"{NAME}/2~")
    assert len({one, longer, renamed, moved}) == 4
    assert "127.0.0.1" not in one


@pytest.mark.parametrize("later", [Reply(places=[[1.0, 2.0]]), Reply(places=[[1.0]], model="another")])
def test_an_answer_of_another_kind_than_the_one_before_is_none(later: Reply) -> None:
    said = iter([Reply(places=[[1.0]]), later, later])
    with ScriptedServer(lambda _: next(said)) as server:
        mine = embedder(server.openai_url)
        asyncio.run(mine.embed(["a"]))
        before = mine.name
        with pytest.raises(ModelGarbled, match="than before"):
            asyncio.run(mine.embed(["a"]))
        assert mine.name == before
        fresh = mine.under(RunLedger(Limits(), Spend()))
        asyncio.run(fresh.embed(["a"]))
        assert fresh.name != before


def data(*vectors: object) -> bytes:
    given = [{"index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return json.dumps({"data": given}).encode()


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
        data([1.0]),
        data([1.0], [1.0], [1.0]),
        data([1.0], [1.0, 2.0]),
        data([], []),
        data([1.0], [math.nan]),
        data([1.0], [math.inf]),
        data([1.0], [None]),
        data([1.0], ["x"]),
        data([1.0], [0.0]),
        data([1e308] * 9, [1.0] * 9),
        data([1.0], "AACAPw=="),
        data([1.0] * 16_001, [1.0] * 16_001),
        json.dumps({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}).encode(),
        json.dumps({"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}).encode(),
        json.dumps({"data": [{"embedding": [1]}, {"embedding": [1]}], "usage": {"prompt_tokens": -5}}).encode(),
    ],
)
def test_what_is_no_answer_is_garbled(body: bytes) -> None:
    error = failure(Reply(body=body), ModelGarbled)
    assert error.usage.input_tokens > 0, "it may have been paid for"


def failure(reply: Reply, kind: type[ModelError], deadline: float = PATIENT) -> ModelError:
    with ScriptedServer(lambda _: reply) as server:
        mine, began = embedder(server.openai_url, EmbeddingOptions(deadline=deadline)), time.monotonic()
        with pytest.raises(ModelError) as caught:
            asyncio.run(mine.embed(["one", "two"]))
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
def test_what_does_not_come_in_time_is_a_timeout(reply: Reply) -> None:
    assert failure(reply, ModelTimeout, deadline=0.5).usage.input_tokens > 0


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
def test_a_refusal_is_told_in_the_endpoints_words(status: int, kind: type[ModelError], remedy: str) -> None:
    reply = Reply(status=status, body=json.dumps({"error": {"message": f"not with {KEY}"}}).encode())
    error = failure(reply, kind)
    assert "not with ***" in str(error)
    assert remedy in error.remedy
    assert error.usage == Usage()


def test_a_broken_connection_is_unreachable_and_one_never_made_costs_nothing() -> None:
    assert failure(Reply(drop=True), ModelUnreachable).usage.input_tokens > 0
    with ScriptedServer(fixed(1.0)) as server:
        gone = server.openai_url
    with pytest.raises(ModelUnreachable) as caught:
        asyncio.run(embedder(gone).embed(["a"]))
    assert caught.value.usage == Usage()


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redstart.ports.model.embedding._LONGEST_ANSWER", 1 << 20)
    assert "MB" in str(failure(Reply(body=b" " * (1 << 20) + data([1.0], [1.0])), ModelGarbled))


@pytest.mark.parametrize("broken", [Reply(hang=True), Reply(status=503)])
def test_one_that_did_not_answer_is_left_alone_in_every_run(broken: Reply, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = [1000.0]
    monkeypatch.setattr("redstart.ports.model.embedding.monotonic", lambda: moments[-1])
    replies = [broken, Reply(places=[(1.0,)]), Reply(places=[(1.0,)])]
    with ScriptedServer(lambda _: replies.pop(0)) as server:
        first = embedder(server.openai_url, EmbeddingOptions(deadline=0.5 if broken.hang else PATIENT))
        with pytest.raises(ModelError):
            asyncio.run(first.embed(["one"]))
        later = first.under(RunLedger(Limits(), Spend()))
        with pytest.raises(ModelBusy, match="not asked for now"):
            asyncio.run(later.embed(["one"]))
        assert len(server.requests) == 1
        moments.append(moments[-1] + REST)
        assert asyncio.run(later.embed(["one"])) == [[1.0]]
        assert asyncio.run(later.embed(["two"])) == [[1.0]]


def test_one_that_refuses_is_asked_every_time() -> None:
    with ScriptedServer(lambda _: Reply(status=401)) as server:
        mine = embedder(server.openai_url)
        for _ in range(2):
            with pytest.raises(ModelRefused):
                asyncio.run(mine.embed(["one"]))
        assert len(server.requests) == 2


def test_what_it_used_is_held_and_settled() -> None:
    ledger = RunLedger(Limits(tokens=1000, usd=1.0), Spend())
    with ScriptedServer(fixed(1.0)) as server:
        mine = embedder(
            server.openai_url, EmbeddingOptions(deadline=PATIENT, rates=Rates(input=1000.0, output=0))
        ).under(ledger)
        asyncio.run(mine.embed(["word " * 40]))
        (counted,) = [request.counted[0] for request in server.requests]
        assert 50 <= counted < 55
        ledger.reserve(0.0, 1000 - counted)
        with pytest.raises(BudgetExceeded):
            ledger.reserve(0.0, 1)
        with pytest.raises(BudgetExceeded):
            asyncio.run(mine.embed(["word"]))
        assert len(server.requests) == 1, "a request beyond the budget is not sent"
    ledger.settle(0.0, 1000 - counted, Usage())
    ledger.reserve(1.0 - counted / 1000, 0)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(0.01, 0)


def test_without_a_count_the_most_is_taken_as_used() -> None:
    ledger = RunLedger(Limits(tokens=100), Spend())
    with ScriptedServer(lambda _: Reply(places=[[1.0]], usage=False)) as server:
        asyncio.run(embedder(server.openai_url).under(ledger).embed(["a" * 60]))
    ledger.reserve(None, 60)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(None, 1)


def test_a_provider_without_such_an_endpoint_is_a_matter_of_the_settings() -> None:
    with pytest.raises(ConfigError, match="Anthropic"):
        asyncio.run(embedder("http://127.0.0.1:9", name="anthropic:claude").embed(["a"]))
