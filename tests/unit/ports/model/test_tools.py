"""Tools, tool calls and answer shapes over both wires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Tool, ToolCall
from redstart.core.errors import ModelGarbled
from redstart.ports.model.port import Profile
from redstart.ports.model.prices import estimate_input
from redstart.ports.model.providers import DEFAULT_PROFILE, connect
from redstart.ports.model.text_tools import describe_tools
from support.server import Reply, Request, ScriptedServer, Wire

NAMES = {Wire.openai: "openai:gpt-4o", Wire.anthropic: "anthropic:claude-sonnet-4-6"}
READ = Tool(
    name="read",
    description="Lines of a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
SHAPE: dict[str, object] = {
    "type": "object",
    "properties": {"why": {"type": "string"}},
    "required": ["why"],
    "additionalProperties": False,
}
CALL = ToolCall(id="call_1", name="read", arguments='{"path": "a.py"}')
ASK = Ask(question="plan", tier=Tier.strong, messages=(Message(role=Role.user, text="Look."),), tools=(READ,))


@pytest.fixture(params=list(Wire))
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


def exchange(
    wire: Wire, ask: Ask, reply: Reply, *, name: str = "", profile: Profile = DEFAULT_PROFILE
) -> tuple[Request, Answer]:
    with ScriptedServer(lambda _: reply) as server:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        model = connect(name or NAMES[wire], base_url=url, api_key="key", deadline=60, profile=profile)
        answer = asyncio.run(model.ask(ask))
        return server.requests[0], answer


def test_offered_tools_are_sent(wire: Wire) -> None:
    request, _ = exchange(wire, ASK, Reply("no need"))
    assert request.tools == ("read",)
    sent_tool = request.body["tools"][0]
    schema = sent_tool["function"]["parameters"] if wire is Wire.openai else sent_tool["input_schema"]
    assert schema["properties"] == {"path": {"type": "string"}}
    assert "Lines of a file." in json.dumps(sent_tool)


def test_tool_call_is_not_an_empty_answer(wire: Wire) -> None:
    _, answer = exchange(wire, ASK, Reply(calls=(CALL,)))
    assert (answer.text, answer.fault) == ("", None)
    (call,) = answer.calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("call_1", "read", {"path": "a.py"})
    assert answer.usage.output_tokens > 0


def test_answer_can_hold_text_and_several_calls(wire: Wire) -> None:
    second_call = CALL.model_copy(update={"id": "call_2", "arguments": '{"path": "b.py"}'})
    _, answer = exchange(wire, ASK, Reply("I look at two.", calls=(CALL, second_call)))
    assert answer.text == "I look at two."
    assert [call.id for call in answer.calls] == ["call_1", "call_2"]


def test_invalid_json_arguments_are_kept_verbatim() -> None:
    invalid_call = CALL.model_copy(update={"arguments": '{"path": "a.py'})
    _, answer = exchange(Wire.openai, ASK, Reply(calls=(invalid_call,)))
    assert answer.calls[0].arguments == '{"path": "a.py'
    assert answer.fault is None


def test_call_of_an_unoffered_tool_is_passed_on(wire: Wire) -> None:
    _, answer = exchange(wire, ASK, Reply(calls=(CALL.model_copy(update={"name": "delete"}),)))
    assert answer.calls[0].name == "delete"


def test_cut_off_call_is_truncated(wire: Wire) -> None:
    _, answer = exchange(wire, ASK, Reply(calls=(CALL,), finish="length"))
    assert answer.fault is AnswerFault.truncated


def test_call_without_a_finish_reason_is_garbled(wire: Wire) -> None:
    with pytest.raises(ModelGarbled) as caught:
        exchange(wire, ASK, Reply(calls=(CALL,), finish=None))
    assert caught.value.usage.input_tokens > 0


def create_conversation(calls: Sequence[ToolCall]) -> Ask:
    replies = tuple(Message(role=Role.tool, text=f"result of {call.id}", reply_to=call.id) for call in calls)
    assistant_message = Message(role=Role.assistant, text="", calls=tuple(calls))
    user_message = Message(role=Role.user, text="Go on.")
    return ASK.model_copy(update={"messages": (*ASK.messages, assistant_message, *replies, user_message)})


def test_conversation_is_sent_with_its_calls_and_results(wire: Wire) -> None:
    second_call = ToolCall(id="call_2", name="search", arguments='{"for": "x"}')
    request, answer = exchange(wire, create_conversation([CALL, second_call]), Reply("done"))
    assert answer.text == "done"
    turns = request.body["messages"]
    if wire is Wire.openai:
        assert [turn["role"] for turn in turns] == ["user", "assistant", "tool", "tool", "user"]
        assert [call["function"]["name"] for call in turns[1]["tool_calls"]] == ["read", "search"]
        assert [turn["tool_call_id"] for turn in turns[2:4]] == ["call_1", "call_2"]
    else:
        assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
        assert [block["input"] for block in turns[1]["content"]] == [{"path": "a.py"}, {"for": "x"}]
        assert [block.get("tool_use_id") for block in turns[2]["content"]] == ["call_1", "call_2", None]
    assert "result of call_1" in request.text
    assert "Go on." in request.text


def test_malformed_call_in_conversation_does_not_break_the_next_question(wire: Wire) -> None:
    request, answer = exchange(
        wire, create_conversation([CALL.model_copy(update={"arguments": "{path"})]), Reply("done")
    )
    assert answer.text == "done"
    assert "{path" in json.dumps(request.body)


def add_shape(ask: Ask) -> Ask:
    return ask.model_copy(update={"shape": SHAPE})


def get_sent_shape(request: Request) -> object:
    if request.wire is Wire.openai:
        return request.body.get("response_format", {}).get("json_schema", {}).get("schema")
    return (request.body.get("output_config") or {}).get("format", {}).get("schema")


PLAIN = ASK.model_copy(update={"tools": ()})


def test_schema_is_sent_when_the_model_supports_it(wire: Wire) -> None:
    request, answer = exchange(wire, add_shape(PLAIN), Reply('{"why": "x"}'))
    assert get_sent_shape(request) == SHAPE
    assert answer.text == '{"why": "x"}'


def test_schema_is_not_sent_when_the_profile_lacks_support(wire: Wire) -> None:
    assert get_sent_shape(exchange(wire, add_shape(PLAIN), Reply("{}"), profile=Profile(tools=True))[0]) is None


def test_older_model_is_not_sent_a_schema() -> None:
    request, _ = exchange(Wire.anthropic, add_shape(PLAIN), Reply("{}"), name="anthropic:claude-older")
    assert get_sent_shape(request) is None


def test_other_servers_get_no_schema_alongside_tools(wire: Wire) -> None:
    request, _ = exchange(wire, add_shape(ASK), Reply("{}"))
    assert request.tools == ("read",)
    assert get_sent_shape(request) is None


def test_plain_question_has_no_tool_or_schema_fields(wire: Wire) -> None:
    body = exchange(wire, PLAIN, Reply("x"))[0].body
    assert not {"tools", "tool_choice", "response_format", "output_config"} & set(body)


def test_tools_and_schemas_count_toward_the_input_estimate() -> None:
    assert estimate_input(ASK) > estimate_input(PLAIN)
    assert estimate_input(add_shape(PLAIN)) > estimate_input(PLAIN)
    assert estimate_input(create_conversation([CALL])) > estimate_input(ASK) + len(CALL.arguments) // 3


def test_model_without_tools_is_offered_them_as_text(wire: Wire) -> None:
    request, answer = exchange(wire, create_conversation([CALL]), Reply("done"), profile=Profile())
    assert answer.text == "done"
    assert not request.tools
    assert "Lines of a file." in request.system
    turns = [(role, text) for role, text in request.messages]
    assert [role for role, _ in turns][:3] == ["user", "assistant", "user"]
    assert turns[1][1] == '```json\n{"name": "read", "arguments": {"path": "a.py"}}\n```'
    assert "result of call_1" in request.text
    assert "tool_calls" not in json.dumps(request.body)
    assert "tool_use" not in json.dumps(request.body)


def test_text_offer_follows_the_system_prompt() -> None:
    ask = ASK.model_copy(update={"messages": (Message(role=Role.system, text="You repair code."), *ASK.messages)})
    text_ask = describe_tools(ask)
    assert [message.role for message in text_ask.messages] == [Role.system, Role.user]
    assert text_ask.messages[0].text.startswith("You repair code.\n\nYou may call these tools")
    assert text_ask.tools == ()


def test_question_without_tools_needs_no_text_offer() -> None:
    assert describe_tools(PLAIN) == PLAIN
