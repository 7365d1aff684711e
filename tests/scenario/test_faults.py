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
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.ports.model.gateway import Gateway, TimeAndChance
from redstart.ports.model.port import Ledger, Model
from redstart.ports.model.providers import connect
from redstart.ports.model.routes import ModelRoute
from support.faults import spoil_script
from support.rig import CARD, RIGHT, WRONG, Rig, make_rig
from support.scenarios import parse_question
from support.server import Reply, Request, Script, ScriptedServer, Wire

SHARE = 0.3
DEADLINE = 2.0
NAMES = {Wire.openai: "openai:gpt-4o", Wire.anthropic: "anthropic:claude-sonnet-4-6"}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder: Path = tmp_path_factory.mktemp("rig")
    new_rig = make_rig(folder)
    yield new_rig
    new_rig.trees.close()


def answer_request(request: Request) -> str:
    """Answer with a wrong patch first, and with the right one once the prompt lists the first attempt."""
    question_name = parse_question(request)
    if question_name == "patch":
        return RIGHT if "number + number + 2" in request.text else WRONG
    return CARD if question_name == "remember" else json.dumps({"summary": "look again", "subtasks": []})


class Ending(NamedTuple):
    result: Result | None
    tree: str


class Endpoint:
    """One server for all runs, so that its port, SDKs and connections are created once."""

    def __init__(self) -> None:
        self.script: Script = answer_request

    def __call__(self, request: Request) -> str | Reply:
        return self.script(request)


async def skip_wait(_: float) -> None:
    """Return at once: the tests of the gateway cover the waiting time."""


def bind_ledger(model: Model, ledger: Ledger) -> Model:
    assert isinstance(model, Gateway)
    return model.with_ledger(ledger)


def run_to_end(rig: Rig, model: Model, name: str) -> Ending:
    route = ModelRoute(name, model)
    gateway = Gateway(lambda _: [route], chance=TimeAndChance(sleep=skip_wait))

    async def run() -> Ending:
        twin = rig.twin()
        adapters = replace(twin.adapters, model=gateway, budgeted=bind_ledger)
        twin.adapters = adapters
        run_id = await twin.begin(limits=Limits(attempts=8, usd=None, tokens=None))
        try:
            report = await drive(adapters, await adapters.store.claim(run_id), run_inline)
        except ModelError:
            return Ending(None, "")
        patch_tree = report.state.now.made
        return Ending(report.state.result, patch_tree.tree if patch_tree else "")

    return asyncio.run(run())


@pytest.mark.parametrize("runs", [pytest.param(20, id="few"), pytest.param(300, id="all", marks=pytest.mark.soak)])
def test_runs_with_faults_end_like_runs_without(rig: Rig, runs: int) -> None:
    endpoint = Endpoint()
    with ScriptedServer(endpoint) as server:
        urls = {Wire.openai: server.openai_url, Wire.anthropic: server.anthropic_url}
        models = {
            wire: connect(name, base_url=urls[wire], api_key="key", deadline=DEADLINE) for wire, name in NAMES.items()
        }
        expected = {wire: run_to_end(rig, model, NAMES[wire]) for wire, model in models.items()}
        assert {item.result for item in expected.values()} == {Result.verified}
        calls = len(server.requests)
        other_endings: list[int] = []
        for seed in range(runs):
            wire = list(Wire)[seed % 2]
            endpoint.script = spoil_script(answer_request, SHARE, random.Random(seed))
            if run_to_end(rig, models[wire], NAMES[wire]) != expected[wire]:
                other_endings.append(seed)
        request_count = len(server.requests) - calls
    assert len(other_endings) <= runs / 100, f"these seeds ended otherwise: {other_endings}"
    assert request_count > runs * calls / 2 * 1.2, "hardly any call failed"
    assert request_count < runs * calls / 2 * 2, "more than twice the calls"
