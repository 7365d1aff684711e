"""One turn of a working session: which tool calls of an answer are served, and what the model is told."""

from __future__ import annotations

import asyncio

from redstart.core.chat import Answer, Ask, Message, Role, Tier, Tool, ToolCall
from redstart.testing.model import ScriptedModel
from redstart.toolkit.model_tools.session import AT_ONCE, SUBMIT, SessionEnd, work
from redstart.toolkit.model_tools.toolset import ToolResult


class Bench:
    """Answers each call with its name."""

    tools = tuple(Tool(name=name, description=name, parameters={}) for name in ("look", SUBMIT))

    def __init__(self) -> None:
        self.is_submitted = False

    async def serve(self, call: ToolCall) -> ToolResult:
        self.is_submitted = call.name == SUBMIT
        return ToolResult(call.name, "done")

    async def take_text(self, text: str) -> str:
        return f"go on after {text}"


def create_calls(*names: str) -> Answer:
    calls = tuple(ToolCall(id=f"{number}", name=name, arguments="{}") for number, name in enumerate(names))
    return Answer(model="scripted", text="", calls=calls)


def play(*answers: Answer, limit: int = 40) -> SessionEnd:
    ask = Ask(question="patch", tier=Tier.strong, messages=(Message(role=Role.user, text="Mend it."),), max_tokens=100)
    model = ScriptedModel(answers)
    return asyncio.run(
        work(model, ask, Bench(), limit, shorten=lambda messages: messages, note=lambda _call, _served: None)
    )


def test_calls_beyond_those_of_one_turn_are_named_as_not_served():
    end = play(create_calls(*["look"] * (AT_ONCE + 2)), create_calls(SUBMIT))
    replies = [message.text for message in end.messages if message.role is Role.tool]
    assert len(replies) == AT_ONCE + 1
    assert replies[AT_ONCE - 1].endswith(
        f"Not served: 2 further calls; at most {AT_ONCE} at once. ({40 - AT_ONCE} more tool calls are possible.)"
    )
    assert "Not served" not in replies[0]


def test_turn_with_as_many_calls_as_allowed_names_none_as_not_served():
    end = play(create_calls(*["look"] * AT_ONCE), create_calls(SUBMIT))
    assert not any("Not served" in message.text for message in end.messages)
    assert end.tool_call_count == AT_ONCE
