"""Money and tokens against an endpoint that keeps its own count: no limit is exceeded and nothing is miscounted."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Usage
from redstart.core.errors import ModelError
from redstart.core.run import Limits, Result, Spend
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.ports.model.budget import RunLedger
from redstart.ports.model.gateway import Gateway, RetryPolicy, TimeAndChance
from redstart.ports.model.port import Ledger, Model, Profile, Rates
from redstart.ports.model.prices import estimate_max_usage, price
from redstart.ports.model.providers import connect
from redstart.ports.model.routes import ModelRoute
from support.faults import FAULTS, Spoiled
from support.rig import CARD, RIGHT, WRONG, Rig, make_rig
from support.scenarios import parse_question
from support.server import Reply, Request, ScriptedServer, Wire

NAMES = {Wire.openai: "openai:in-house", Wire.anthropic: "anthropic:in-house"}
UNFINISHED = Spoiled(lambda _, response: replace(response, finish=None), ModelError)
UNHEARD = {name: FAULTS[name] for name in ("reset", "HTML 200", "cut JSON", "{}", "garbage")}
"""Faults after which only the provider knows the usage."""
REFUSED = ("429", "500", "529")
HEARD = {name: FAULTS[name] for name in (*REFUSED, "truncated")} | {"unfinished": UNFINISHED}


async def skip_wait(_: float) -> None:
    """Return at once: the tests of the gateway cover the waiting time."""


@dataclass
class Endpoint:
    """Answers with random length, fails at random, and counts the true usage."""

    luck: random.Random = field(default_factory=random.Random)
    share: float = 0.0
    faults: dict[str, Spoiled] = field(default_factory=dict[str, Spoiled])
    unheard: int = 0
    """Number of replies whose usage the caller cannot know."""
    billed: int = 0
    """Tokens of all answers, whether or not the caller received them."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Reply:
        with self.lock:
            return self._reply(request)

    def _reply(self, request: Request) -> Reply:
        response = Reply("x" * self.luck.randrange(1, 4 * (request.max_tokens or 1)))
        name = self.luck.choice(sorted(self.faults)) if self.luck.random() < self.share else ""
        if name not in REFUSED:
            self.billed += -(-len(request.text) // 4) + -(-len(response.text) // 4)
        self.unheard += name in UNHEARD
        return self.faults[name].spoil(request, response) if name else response


class Books(NamedTuple):
    """The usage of one run as the ledger and the callers counted it."""

    spent: Spend
    lost: list[Usage]
    """Usage of the questions that finally failed."""
    asks: list[Ask]

    @property
    def tokens(self) -> tuple[int, int]:
        return (
            self.spent.input_tokens + sum(item.input_tokens for item in self.lost),
            self.spent.output_tokens + sum(item.output_tokens for item in self.lost),
        )

    @property
    def usd(self) -> float:
        return self.spent.usd + sum(item.usd or 0.0 for item in self.lost)


def generate_asks(rng: random.Random) -> list[Ask]:
    return [
        Ask(
            question="patch",
            tier=Tier.strong,
            messages=(Message(role=Role.user, text="y" * rng.randrange(1, 4000)),),
            max_tokens=rng.randrange(16, 900),
        )
        for _ in range(rng.randrange(2, 9))
    ]


async def ask_all(model: Model, ledger: RunLedger, asks: list[Ask], *, at_once: bool) -> Books:
    lost_usage: list[Usage] = []

    async def ask_one(ask: Ask) -> None:
        try:
            answer: Answer = await model.ask(ask)
        except ModelError as error:
            lost_usage.append(error.usage)
            return
        if answer.fault is not AnswerFault.budget or answer.usage != Usage():
            ledger.count(answer.usage)

    if at_once:
        await asyncio.gather(*(ask_one(ask) for ask in asks))
    else:
        for ask in asks:
            await ask_one(ask)
    return Books(ledger.step_spend, lost_usage, asks)


async def check_run(seed: int, server: ScriptedServer, endpoint: Endpoint, models: dict[Wire, Model]) -> bool:
    """Check one random run and return whether a limit stopped it."""
    rng = random.Random(seed)
    wire = rng.choice(list(Wire))
    rates = rng.choice([None, Rates(input=rng.uniform(0, 20), output=rng.uniform(0, 80))])
    endpoint.luck, endpoint.share = random.Random(seed), rng.choice([0.0, 0.3, 0.6])
    endpoint.unheard = endpoint.billed = 0
    endpoint.faults = rng.choice([HEARD, HEARD | UNHEARD])
    tokens = rng.choice([None, rng.randrange(0, 12_000)])
    usd = rng.choice([None, rng.uniform(0, 0.3)])
    name, asks, at_once = NAMES[wire], generate_asks(rng), rng.random() < 0.3
    ledger = RunLedger(Limits(tokens=tokens, usd=usd), Spend())
    route = ModelRoute(name, Priced(models[wire], name, rates), profile=Profile(rates=rates))
    gateway = Gateway(
        lambda _: [route], RetryPolicy(max_calls=3, failures=99), TimeAndChance(sleep=skip_wait, get_random=rng.random)
    )
    calls_before = len(server.requests)
    books = await ask_all(gateway.with_ledger(ledger), ledger, asks, at_once=at_once)
    requests = server.requests[calls_before:]
    token_totals = [sum(request.counted[index] for request in requests) for index in (0, 1)]
    if not endpoint.unheard:
        assert list(books.tokens) == token_totals, f"seed {seed}: the accounts differ from the endpoint's"
    reservations = [estimate_max_usage(name, ask, rates=rates) for ask in asks]
    largest = [max(item.input_tokens for item in reservations), max(item.output_tokens for item in reservations)]
    for index in (0, 1):
        assert token_totals[index] <= books.tokens[index] <= token_totals[index] + endpoint.unheard * largest[index]
    if tokens is not None:
        assert sum(books.tokens) <= tokens, f"seed {seed}: the accounts exceed the token limit"
        assert endpoint.billed <= tokens, f"seed {seed}: the bill exceeds the token limit"
    if usd is not None and rates is not None:
        assert books.usd <= usd + 1e-9, f"seed {seed}: the accounts exceed the dollar limit"
    if rates is not None:
        assert books.usd >= (price(name, *token_totals, rates=rates) or 0.0) - 1e-9
    return len(requests) < len(asks)


class Priced:
    """A model whose answers are priced by these rates."""

    def __init__(self, model: Model, name: str, rates: Rates | None) -> None:
        self._model, self._name, self._rates = model, name, rates

    async def ask(self, ask: Ask) -> Answer:
        try:
            answer = await self._model.ask(ask)
        except ModelError as error:
            error.usage = self._with_price(error.usage)
            raise
        return answer.model_copy(update={"usage": self._with_price(answer.usage)})

    def _with_price(self, usage: Usage) -> Usage:
        if self._rates is None:
            return usage
        usd = price(self._name, usage.input_tokens, usage.output_tokens, rates=self._rates)
        return usage.model_copy(update={"usd": usd})


@pytest.mark.parametrize("runs", [pytest.param(40, id="few"), pytest.param(500, id="all", marks=pytest.mark.soak)])
async def test_no_limit_is_exceeded_and_spending_matches_the_endpoint(runs: int) -> None:
    endpoint = Endpoint()
    with ScriptedServer(endpoint) as server:
        urls = {Wire.openai: server.openai_url, Wire.anthropic: server.anthropic_url}
        models = {wire: connect(NAMES[wire], base_url=urls[wire], api_key="k", deadline=60) for wire in Wire}
        was_stopped = [await check_run(seed, server, endpoint, models) for seed in range(runs)]
    assert 0.1 < sum(was_stopped) / runs < 0.9, "the limits must stop some of the runs but not all"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path)
    yield new_rig
    new_rig.trees.close()


@pytest.mark.parametrize("wire", list(Wire))
def test_spending_of_a_whole_run_matches_the_endpoint(rig: Rig, wire: Wire) -> None:
    """Use failures that report their usage, in a run of three attempts."""
    rng = random.Random(7)

    def reply(request: Request) -> Reply:
        question_name = parse_question(request)
        patch_text = RIGHT if request.text.count("number + number + 2") > 4 else WRONG
        text = {"patch": patch_text, "remember": CARD}.get(
            question_name, json.dumps({"summary": "again", "subtasks": []})
        )
        response = Reply(text)
        return (
            HEARD[rng.choice(["429", "500", "unfinished"])].spoil(request, response) if rng.random() < 0.4 else response
        )

    def bind_ledger(model: Model, ledger: Ledger) -> Model:
        assert isinstance(model, Gateway)
        return model.with_ledger(ledger)

    async def run(model: Model) -> Spend:
        route = ModelRoute(NAMES[wire], model)
        gateway = Gateway(lambda _: [route], RetryPolicy(max_calls=12, failures=99), TimeAndChance(sleep=skip_wait))
        rig.adapters = replace(rig.adapters, model=gateway, budgeted=bind_ledger)
        run_id = await rig.begin(limits=Limits(attempts=6))
        report = await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)
        assert report.state.result in (Result.verified, Result.capped, Result.stuck)
        return report.state.spend

    with ScriptedServer(reply) as server:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        spend = asyncio.run(run(connect(NAMES[wire], base_url=url, api_key="k", deadline=60)))
        requests = server.requests
    assert len(requests) > spend.calls, "no call failed"
    assert spend.input_tokens == sum(request.counted[0] for request in requests)
    assert spend.output_tokens == sum(request.counted[1] for request in requests)
