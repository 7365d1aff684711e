"""A real model, over both wires: `just live` against the endpoint that REDSTART_LIVE_URL names.

`REDSTART_LIVE_URL` is the address without a path, such as http://127.0.0.1:11434 (Ollama), :8080 (llama.cpp) or :8000
(vLLM); `REDSTART_LIVE_MODEL` is the model's name there; `REDSTART_LIVE_KEY` is a key, if needed. The tests do not judge
a model's answers: they pass even with nonsense, as long as the endpoint keeps to its protocol.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Tool
from redstart.core.errors import ModelRefused
from redstart.ports.model.mask import MaskedModel
from redstart.ports.model.port import Model, Profile
from redstart.ports.model.providers import connect
from redstart.toolkit.prompts.asking import AnswerOutcome, ask_for
from redstart.toolkit.prompts.shapes import ReflectionAnswer
from support.server import Wire
from support.user import User

URL = os.environ.get("REDSTART_LIVE_URL", "").rstrip("/")
NAME = os.environ.get("REDSTART_LIVE_MODEL", "local")
KEY = os.environ.get("REDSTART_LIVE_KEY", "none")
SECONDS = 600.0

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not URL, reason="REDSTART_LIVE_URL is not set"),
]

SYSTEM = 'Answer with JSON alone: {"root_cause": "...", "what_failed": "...", "try_next": "..."}'
READ = Tool(
    name="read",
    description="Shows a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def base(wire: Wire) -> str:
    return f"{URL}/v1" if wire is Wire.openai else URL


@pytest.fixture(params=list(Wire))
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


def model(wire: Wire, **known: object) -> Model:
    profile = Profile.model_validate(known)
    return connect(f"{wire.value}:{NAME}", base_url=base(wire), api_key=KEY, deadline=SECONDS, profile=profile)


def question(user: str, system: str = "Be brief.", *, max_tokens: int = 40, **more: object) -> Ask:
    messages = (Message(role=Role.system, text=system), Message(role=Role.user, text=user))
    return Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=max_tokens).model_copy(update=more)


def answered(model: Model, ask: Ask) -> Answer:
    try:
        return asyncio.run(model.ask(ask))
    except ModelRefused as error:
        if "404" in str(error):
            pytest.skip(f"the endpoint does not speak this wire: {error}")
        raise


def test_a_question_is_answered_and_counted(wire):
    said = answered(model(wire), question("Say the word: red"))
    assert said.text.strip()
    assert said.fault in (None, AnswerFault.truncated)
    assert said.usage.input_tokens > 0
    assert said.usage.output_tokens > 0


def test_an_answer_that_the_limit_cuts_is_told_from_a_whole_one(wire):
    said = answered(model(wire), question("Count from 1 to 100, one number a line.", max_tokens=8))
    assert said.fault is AnswerFault.truncated
    assert said.usage.output_tokens <= 8


def test_a_conversation_with_earlier_turns_is_taken(wire):
    ask = question("Remember the number 41.")
    turns = (Message(role=Role.assistant, text="I will."), Message(role=Role.user, text="Add one to it."))
    said = answered(model(wire), ask.model_copy(update={"messages": (*ask.messages, *turns)}))
    assert said.text.strip()


def test_a_typed_answer_comes_with_the_repairs_that_it_needs(wire):
    ask = question("total() returned 5 where 6 was expected: it leaves out the first price.", SYSTEM, max_tokens=150)
    heard: AnswerOutcome[ReflectionAnswer] = asyncio.run(ask_for(MaskedModel(model(wire), {}), ask, ReflectionAnswer))
    assert heard.value is not None or heard.fault
    assert heard.repairs <= 2


def test_a_model_that_is_held_to_a_shape_answers_in_json():
    shape = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    shape |= {"additionalProperties": False}
    try:
        said = answered(model(Wire.openai, shapes=True), question("Name a colour.", max_tokens=60, shape=shape))
    except ModelRefused as error:
        pytest.skip(f"the endpoint does not support shapes: {error}")
    if said.fault is None:
        assert isinstance(json.loads(said.text)["colour"], str)


def test_tools_are_offered_and_whatever_comes_is_an_answer(wire):
    said = answered(model(wire), question("Use the tool to read setup.py.", max_tokens=80, tools=(READ,)))
    assert said.calls or said.text.strip()


def test_a_whole_run_ends_with_a_verdict_whatever_the_model_says(tmp_path: Path, wire, monkeypatch):
    monkeypatch.setattr("support.user.SECONDS", 5 * SECONDS)
    answered(model(wire), question("Say: ready", max_tokens=5))
    repo = tmp_path / "shop"
    repo.mkdir()
    (repo / "cart.py").write_text("def total(prices):\n    return sum(prices[1:])\n")
    (repo / "test_cart.py").write_text("from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n")
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a")):
        subprocess.run(["git", *words], cwd=repo, check=True)
    user = User(tmp_path, Path(sys.prefix))
    user.environ |= {
        "REDSTART_MODELS__STRONG": f"{wire.value}:{NAME}",
        "REDSTART_MODELS__BASE_URL": base(wire),
        "REDSTART_MODELS__DEADLINE": str(SECONDS),
        f"{wire.value.upper()}_API_KEY": KEY,
    }
    ran = user.redstart("fix", repo, "--json", "--max-iters", "1")
    assert ran.code in (0, 1, 4, 6, 7), ran.out + ran.err
    if ran.code == 0:
        assert ran.ending["result"] == "verified"
