"""Whole runs against an endpoint that fails in about a third of the calls end like runs without faults."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.errors import ModelError
from redstart.core.run import Limits, Result
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.model.gateway import Gateway, TimeAndChance
from redstart.ports.model.lanes import ModelRoute
from redstart.ports.model.port import Ledger, Model
from redstart.ports.model.providers import connect
from support.faults import spoiling
from support.rig import CARD, RIGHT, WRONG, Rig, make_rig
from support.scenarios import question
from support.server import Reply, Request, Script, ScriptedServer, Wire

SHARE = 0.3
DEADLINE = 2.0
NAMES = {Wire.openai: "openai:gpt-4o", Wire.anthropic: "anthropic:claude-sonnet-4-6"}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("rig")
    made = make_rig(folder)
    yield made
    made.trees.close()


def provider(request: Request) -> str:
    """Answer with a wrong patch first, and with the right one once the prompt lists the first attempt."""
    asked = question(request)
    if asked == "patch":
        return RIGHT if "number + number + 2" in request.text else WRONG
    return CARD if asked == "remember" else json.dumps({"summary": "look again", "subtasks": []})


class Ending(NamedTuple):
    result: Result | None
    tree: str


class Endpoint:
    """One server for all runs, so that its port, SDKs and connections are created once."""

    def __init__(self) -> None:
        self.script: Script = provider

    def __call__(self, request: Request) -> str | Reply:
        return self.script(request)


async def no_wait(_: float) -> None:
    """Return at once: the tests of the gateway cover the waiting time."""


def under(model: Model, ledger: Ledger) -> Model:
    assert isinstance(model, Gateway)
    return model.under(ledger)


def ending(rig: Rig, model: Model, name: str) -> Ending:
    lane = ModelRoute(name, model)
    gateway = Gateway(lambda _: [lane], chance=TimeAndChance(sleep=no_wait))

    async def run() -> Ending:
        twin = rig.twin()
        adapters = replace(twin.adapters, model=gateway, budgeted=under)
        twin.adapters = adapters
        run_id = await twin.begin(limits=Limits(attempts=8, usd=None, tokens=None))
        try:
            ended = await drive(adapters, await adapters.store.claim(run_id), inline)
        except ModelError:
            return Ending(None, "")
        made = ended.state.now.made
        return Ending(ended.state.result, made.tree if made else "")

    return asyncio.run(run())


@pytest.mark.parametrize("runs", [pytest.param(20, id="few"), pytest.param(300, id="all", marks=pytest.mark.soak)])
def test_runs_end_as_without_faults(rig: Rig, runs: int) -> None:
    endpoint = Endpoint()
    with ScriptedServer(endpoint) as server:
        urls = {Wire.openai: server.openai_url, Wire.anthropic: server.anthropic_url}
        models = {
            wire: connect(name, base_url=urls[wire], api_key="key", deadline=DEADLINE) for wire, name in NAMES.items()
        }
        clean = {wire: ending(rig, model, NAMES[wire]) for wire, model in models.items()}
        assert {item.result for item in clean.values()} == {Result.verified}
        calls = len(server.requests)
        other: list[int] = []
        for seed in range(runs):
            wire = list(Wire)[seed % 2]
            endpoint.script = spoiling(provider, SHARE, random.Random(seed))
            if ending(rig, models[wire], NAMES[wire]) != clean[wire]:
                other.append(seed)
        asked = len(server.requests) - calls
    assert len(other) <= runs / 100, f"these seeds ended otherwise: {other}"
    assert asked > runs * calls / 2 * 1.2, "hardly any call failed"
    assert asked < runs * calls / 2 * 2, "more than twice the calls"
