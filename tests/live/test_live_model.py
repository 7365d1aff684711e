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
from redstart.ports.model.port import Model, Profile
from redstart.ports.model.providers import connect
from redstart.ports.model.secret_mask import MaskedModel
from redstart.toolkit.prompts.answer_types import ReflectionAnswer
from redstart.toolkit.prompts.ask_model import AnswerOutcome, ask_for
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


def build_base_url(wire: Wire) -> str:
    return f"{URL}/v1" if wire is Wire.openai else URL


@pytest.fixture(params=list(Wire))
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


def connect_model(wire: Wire, **profile_fields: object) -> Model:
    profile = Profile.model_validate(profile_fields)
    return connect(
        f"{wire.value}:{NAME}", base_url=build_base_url(wire), api_key=KEY, deadline=SECONDS, profile=profile
    )


def build_question(user: str, system: str = "Be brief.", *, max_tokens: int = 40, **fields: object) -> Ask:
    messages = (Message(role=Role.system, text=system), Message(role=Role.user, text=user))
    return Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=max_tokens).model_copy(update=fields)


def ask_or_skip(model: Model, ask: Ask) -> Answer:
    try:
        return asyncio.run(model.ask(ask))
    except ModelRefused as error:
        if "404" in str(error):
            pytest.skip(f"the endpoint does not speak this wire: {error}")
        raise


def test_question_is_answered_and_counted(wire):
    answer = ask_or_skip(connect_model(wire), build_question("Say the word: red"))
    assert answer.text.strip()
    assert answer.fault in (None, AnswerFault.truncated)
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0


def test_answer_cut_by_the_limit_is_marked_truncated(wire):
    answer = ask_or_skip(connect_model(wire), build_question("Count from 1 to 100, one number a line.", max_tokens=8))
    assert answer.fault is AnswerFault.truncated
    assert answer.usage.output_tokens <= 8


def test_conversation_with_earlier_turns_is_accepted(wire):
    ask = build_question("Remember the number 41.")
    turns = (Message(role=Role.assistant, text="I will."), Message(role=Role.user, text="Add one to it."))
    answer = ask_or_skip(connect_model(wire), ask.model_copy(update={"messages": (*ask.messages, *turns)}))
    assert answer.text.strip()


async def test_typed_answer_needs_at_most_two_repairs(wire):
    ask = build_question(
        "total() returned 5 where 6 was expected: it leaves out the first price.", SYSTEM, max_tokens=150
    )
    outcome: AnswerOutcome[ReflectionAnswer] = await ask_for(
        MaskedModel(connect_model(wire), {}), ask, ReflectionAnswer
    )
    assert outcome.value is not None or outcome.fault
    assert outcome.repairs <= 2


def test_model_bound_to_a_schema_answers_in_json():
    shape = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    shape |= {"additionalProperties": False}
    try:
        answer = ask_or_skip(
            connect_model(Wire.openai, shapes=True), build_question("Name a colour.", max_tokens=60, shape=shape)
        )
    except ModelRefused as error:
        pytest.skip(f"the endpoint does not support shapes: {error}")
    if answer.fault is None:
        assert isinstance(json.loads(answer.text)["colour"], str)


def test_offered_tools_lead_to_a_call_or_an_answer(wire):
    answer = ask_or_skip(
        connect_model(wire), build_question("Use the tool to read setup.py.", max_tokens=80, tools=(READ,))
    )
    assert answer.calls or answer.text.strip()


def test_whole_run_ends_with_a_verdict_whatever_the_model_answers(tmp_path: Path, wire, monkeypatch):
    monkeypatch.setattr("support.user.SECONDS", 5 * SECONDS)
    ask_or_skip(connect_model(wire), build_question("Say: ready", max_tokens=5))
    repo = tmp_path / "shop"
    repo.mkdir()
    (repo / "cart.py").write_text("def total(prices):\n    return sum(prices[1:])\n")
    (repo / "test_cart.py").write_text("from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n")
    for arguments in (
        ("init", "-q"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "a"),
    ):
        subprocess.run(["git", *arguments], cwd=repo, check=True)
    user = User(tmp_path, Path(sys.prefix))
    user.environ |= {
        "REDSTART_MODELS__STRONG": f"{wire.value}:{NAME}",
        "REDSTART_MODELS__BASE_URL": build_base_url(wire),
        "REDSTART_MODELS__DEADLINE": str(SECONDS),
        f"{wire.value.upper()}_API_KEY": KEY,
    }
    result = user.redstart("fix", repo, "--json", "--max-iters", "1")
    assert result.code in (0, 1, 4, 6, 7), result.out + result.err
    if result.code == 0:
        assert result.ending["result"] == "verified"
