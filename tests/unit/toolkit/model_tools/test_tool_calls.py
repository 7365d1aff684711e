"""Tool calls that a model wrote into its text: only unambiguous text counts as a call, everything else is kept."""

from __future__ import annotations

import json
import time

import pytest

from redstart.core.chat import ToolCall
from redstart.toolkit.model_tools.tool_calls import LONGEST, TOOLS, parse_arguments, parse_written_calls

READ = {"path": "shop/cart.py", "start": 1, "end": 40}
PLAIN = json.dumps({"name": "read", "arguments": READ})

SHAPES = {
    "fenced json": f"I need more.\n\n```json\n{PLAIN}\n```\n",
    "fenced without a language": f"```\n{PLAIN}\n```",
    "fence called tool_call": f"```tool_call\n{PLAIN}\n```",
    "tildes": f"~~~json\n{PLAIN}\n~~~",
    "bare": PLAIN,
    "bare over several lines": json.dumps({"name": "read", "arguments": READ}, indent=2),
    "after prose": f"Let me look at the cart.\n{PLAIN}",
    "prose on both sides": f"First:\n\n{PLAIN}\n\nThen I will answer.",
    "tags": f"<tool_call>\n{PLAIN}\n</tool_call>",
    "tags not closed": f"<tool_call>\n{PLAIN}\n",
    "a fence in tags": f"<tool_call>\n```json\n{PLAIN}\n```\n</tool_call>",
    "function_call tags": f"<function_call>{PLAIN}</function_call>",
    "function= tags": f"<function=read>{json.dumps(READ)}</function>",
    "mistral's mark": f"[TOOL_CALLS] [{PLAIN}]",
    "llama's mark": "<|python_tag|>" + json.dumps({"name": "read", "parameters": READ}),
    "tool and args": json.dumps({"tool": "read", "args": READ}),
    "tool_name and parameters": json.dumps({"tool_name": "read", "parameters": READ}),
    "action and action_input": json.dumps({"action": "read", "action_input": READ}),
    "openai's own": json.dumps({"type": "function", "function": {"name": "read", "arguments": json.dumps(READ)}}),
    "openai's list": json.dumps({"tool_calls": [{"id": "1", "function": {"name": "read", "arguments": READ}}]}),
    "the name as key": json.dumps({"read": READ}),
    "flat": json.dumps({"name": "read", **READ}),
    "flat with tool": json.dumps({"tool": "read", **READ}),
    "a list of one": f"[{PLAIN}]",
    "python's quotes": f"```python\n{json.loads(PLAIN)!r}\n```",
    "other names": json.dumps({"name": "read", "arguments": {"file_path": "shop/cart.py", "lines": "1-40"}}),
    "other names still": json.dumps(
        {"name": "read", "arguments": {"filename": "shop/cart.py", "start_line": 1, "end_line": 40}}
    ),
}

NO_CALLS = {
    "nothing": "",
    "prose": "I would read shop/cart.py and search for total.",
    "json of another kind": '{"summary": "read the file", "subtasks": []}',
    "an unknown name": '```json\n{"name": "delete", "arguments": {"path": "a.py"}}\n```',
    "a record with a name of ours": '{"name": "read", "email": "read@example.org"}',
    "arguments that are none of ours": '{"name": "read", "arguments": {"command": "rm -rf /"}}',
    "no arguments": '{"name": "read", "arguments": {}}',
    "arguments that are no object": '{"name": "search", "arguments": [1, 2]}',
    "in the middle of a line": f"as in {PLAIN}",
    "a list with something else": f'[{PLAIN}, {{"name": "bob"}}]',
    "cut off": '```json\n{"name": "read", "arguments": {"path": "a',
    "a python call": "```python\nread('shop/cart.py')\n```",
    "deep nesting": "[" * 5000 + " read",
    "too long": PLAIN + " " * LONGEST,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_tool_call_is_read_in_every_shape(shape):
    parsed = parse_written_calls(SHAPES[shape])
    assert [call.name for call in parsed.calls] == ["read"]
    arguments = parse_arguments(parsed.calls[0])
    assert arguments is not None
    assert {key: str(value) for key, value in arguments.items()} == {key: str(value) for key, value in READ.items()}
    assert "shop/cart.py" not in parsed.remaining_text


@pytest.mark.parametrize("shape", NO_CALLS)
def test_ambiguous_text_is_not_a_tool_call(shape):
    assert parse_written_calls(NO_CALLS[shape]) == ((), NO_CALLS[shape])


def test_several_calls_keep_their_order_and_get_distinct_ids():
    text = f'```json\n{PLAIN}\n```\nand\n```json\n{{"name": "outline", "arguments": {{}}}}\n```'
    parsed = parse_written_calls(text)
    assert [(call.id, call.name) for call in parsed.calls] == [("look-1", "read"), ("look-2", "outline")]
    assert parsed.remaining_text == "and"


def test_text_beside_a_call_is_kept():
    edits = "a.py\n<<<<<<< SEARCH\nx = {'name': 'read'}\n=======\nx = 1\n>>>>>>> REPLACE"
    assert parse_written_calls(f"```json\n{PLAIN}\n```\n{edits}").remaining_text == edits
    assert parse_written_calls(edits) == ((), edits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ('{"path": "a.py"}', {"path": "a.py"}),
        ("{'path': 'a.py'}", {"path": "a.py"}),
        ("path=a.py", None),
        ("[1]", None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_of_a_native_call_are_parsed(text, expected):
    assert parse_arguments(ToolCall(id="1", name="read", arguments=text)) == expected


def test_every_tool_is_described_by_an_object_schema():
    assert [tool.name for tool in TOOLS] == ["read", "search", "outline", "references", "history"]
    assert all(tool.parameters["type"] == "object" and tool.description for tool in TOOLS)


@pytest.mark.parametrize(
    "piece",
    [
        "```a\n",
        "```json\n{\n",
        "<tool_call>",
        "<tool_call>\n```\n",
        "<function=read>",
        "{\n",
        "[\n",
        '{"name": "read",\n',
        "`",
    ],
)
def test_malicious_text_is_parsed_quickly(piece):
    text = "read" + piece * (LONGEST // len(piece) - 1)
    began = time.process_time()
    assert parse_written_calls(text) == ((), text)
    assert time.process_time() - began < 10
