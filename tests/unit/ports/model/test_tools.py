"""Tools, tool calls and answer shapes over both wires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Tool, ToolCall
from redstart.core.errors import ModelGarbled
from redstart.ports.model.plain import in_words
from redstart.ports.model.port import Profile
from redstart.ports.model.prices import estimate_input
from redstart.ports.model.providers import ABLE, connect
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


def exchange(wire: Wire, ask: Ask, reply: Reply, *, name: str = "", profile: Profile = ABLE) -> tuple[Request, Answer]:
    with ScriptedServer(lambda _: reply) as server:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        model = connect(name or NAMES[wire], base_url=url, api_key="key", deadline=60, profile=profile)
        answer = asyncio.run(model.ask(ask))
        return server.requests[0], answer


def test_the_tools_that_a_question_offers_are_sent(wire: Wire) -> None:
    request, _ = exchange(wire, ASK, Reply("no need"))
    assert request.tools == ("read",)
    sent = request.body["tools"][0]
    schema = sent["function"]["parameters"] if wire is Wire.openai else sent["input_schema"]
    assert schema["properties"] == {"path": {"type": "string"}}
    assert "Lines of a file." in json.dumps(sent)


def test_a_call_is_an_answer_and_not_an_empty_one(wire: Wire) -> None:
    _, answer = exchange(wire, ASK, Reply(calls=(CALL,)))
    assert (answer.text, answer.fault) == ("", None)
    (call,) = answer.calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("call_1", "read", {"path": "a.py"})
    assert answer.usage.output_tokens > 0


def test_several_calls_and_words_beside_them(wire: Wire) -> None:
    second = CALL.model_copy(update={"id": "call_2", "arguments": '{"path": "b.py"}'})
    _, answer = exchange(wire, ASK, Reply("I look at two.", calls=(CALL, second)))
    assert answer.text == "I look at two."
    assert [call.id for call in answer.calls] == ["call_1", "call_2"]


def test_arguments_that_are_no_json_are_kept_as_they_were_written() -> None:
    broken = CALL.model_copy(update={"arguments": '{"path": "a.py'})
    _, answer = exchange(Wire.openai, ASK, Reply(calls=(broken,)))
    assert answer.calls[0].arguments == '{"path": "a.py'
    assert answer.fault is None


def test_a_call_of_a_tool_that_was_not_offered_is_passed_on(wire: Wire) -> None:
    _, answer = exchange(wire, ASK, Reply(calls=(CALL.model_copy(update={"name": "delete"}),)))
    assert answer.calls[0].name == "delete"


def test_a_call_that_was_cut_off_is_truncated(wire: Wire) -> None:
    _, answer = exchange(wire, ASK, Reply(calls=(CALL,), finish="length"))
    assert answer.fault is AnswerFault.truncated


def test_a_call_without_a_finish_reason_is_no_answer(wire: Wire) -> None:
    with pytest.raises(ModelGarbled) as caught:
        exchange(wire, ASK, Reply(calls=(CALL,), finish=None))
    assert caught.value.usage.input_tokens > 0


def talk(calls: Sequence[ToolCall]) -> Ask:
    replies = tuple(Message(role=Role.tool, text=f"result of {call.id}", reply_to=call.id) for call in calls)
    asked = Message(role=Role.assistant, text="", calls=tuple(calls))
    last = Message(role=Role.user, text="Go on.")
    return ASK.model_copy(update={"messages": (*ASK.messages, asked, *replies, last)})


def test_the_conversation_goes_back_with_its_calls_and_their_results(wire: Wire) -> None:
    second = ToolCall(id="call_2", name="search", arguments='{"for": "x"}')
    request, answer = exchange(wire, talk([CALL, second]), Reply("done"))
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


def test_a_broken_call_in_the_conversation_does_not_break_the_next_question(wire: Wire) -> None:
    request, answer = exchange(wire, talk([CALL.model_copy(update={"arguments": "{path"})]), Reply("done"))
    assert answer.text == "done"
    assert "{path" in json.dumps(request.body)


def shaped(ask: Ask) -> Ask:
    return ask.model_copy(update={"shape": SHAPE})


def sent_shape(request: Request) -> object:
    if request.wire is Wire.openai:
        return request.body.get("response_format", {}).get("json_schema", {}).get("schema")
    return (request.body.get("output_config") or {}).get("format", {}).get("schema")


PLAIN = ASK.model_copy(update={"tools": ()})


def test_a_shape_is_sent_where_the_model_can_be_held_to_one(wire: Wire) -> None:
    request, answer = exchange(wire, shaped(PLAIN), Reply('{"why": "x"}'))
    assert sent_shape(request) == SHAPE
    assert answer.text == '{"why": "x"}'


def test_a_shape_is_not_sent_where_it_cannot(wire: Wire) -> None:
    assert sent_shape(exchange(wire, shaped(PLAIN), Reply("{}"), profile=Profile(tools=True))[0]) is None


def test_an_older_model_is_not_sent_a_shape() -> None:
    request, _ = exchange(Wire.anthropic, shaped(PLAIN), Reply("{}"), name="anthropic:claude-older")
    assert sent_shape(request) is None


def test_other_servers_get_no_shape_beside_tools(wire: Wire) -> None:
    request, _ = exchange(wire, shaped(ASK), Reply("{}"))
    assert request.tools == ("read",)
    assert sent_shape(request) is None


def test_a_plain_question_is_sent_as_before(wire: Wire) -> None:
    body = exchange(wire, PLAIN, Reply("x"))[0].body
    assert not {"tools", "tool_choice", "response_format", "output_config"} & set(body)


def test_tools_and_shapes_count_among_what_a_question_takes() -> None:
    assert estimate_input(ASK) > estimate_input(PLAIN)
    assert estimate_input(shaped(PLAIN)) > estimate_input(PLAIN)
    assert estimate_input(talk([CALL])) > estimate_input(ASK) + len(CALL.arguments) // 3


def test_a_model_without_tools_is_offered_them_in_words(wire: Wire) -> None:
    request, answer = exchange(wire, talk([CALL]), Reply("done"), profile=Profile())
    assert answer.text == "done"
    assert not request.tools
    assert "Lines of a file." in request.system
    turns = [(role, text) for role, text in request.messages]
    assert [role for role, _ in turns][:3] == ["user", "assistant", "user"]
    assert turns[1][1] == '```json\n{"name": "read", "arguments": {"path": "a.py"}}\n```'
    assert "result of call_1" in request.text
    assert "tool_calls" not in json.dumps(request.body)
    assert "tool_use" not in json.dumps(request.body)


def test_the_offer_in_words_follows_what_the_system_says() -> None:
    ask = ASK.model_copy(update={"messages": (Message(role=Role.system, text="You repair code."), *ASK.messages)})
    said = in_words(ask)
    assert [message.role for message in said.messages] == [Role.system, Role.user]
    assert said.messages[0].text.startswith("You repair code.\n\nYou may call these tools")
    assert said.tools == ()


def test_a_question_without_tools_needs_no_words() -> None:
    assert in_words(PLAIN) == PLAIN
