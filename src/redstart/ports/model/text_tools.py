"""Tools for models whose API has none, or that do not use it: described in the prompt and called in the answer."""

from __future__ import annotations

import json

from redstart.core.chat import Ask, Message, Role, Tool, ToolCall

_OFFER = """You may call these tools before you answer:

{tools}

To call one, write nothing but a block like this, and you are told what it gives:

```json
{{"name": "{example}", "arguments": {{}}}}
```"""


def describe_tools(ask: Ask) -> Ask:
    """Describe the tools of a question in its system text, and turn tool calls and results into plain turns.

    A question without tools and tool calls is returned unchanged.
    """
    messages = tuple(_flatten_message(message) for message in ask.messages)
    if ask.tools:
        offer = _offer(ask.tools)
        first = messages[0] if messages else None
        if first is not None and first.role is Role.system:
            messages = (first.model_copy(update={"text": f"{first.text}\n\n{offer}"}), *messages[1:])
        else:
            messages = (Message(role=Role.system, text=offer), *messages)
    return ask.model_copy(update={"tools": (), "messages": messages})


def format_tools(tools: tuple[Tool, ...]) -> str:
    """Format the tools, one per line, for a reader who calls them in text."""
    return "\n".join(f"- {tool.name}: {tool.description} Arguments: {json.dumps(tool.parameters)}" for tool in tools)


def _offer(tools: tuple[Tool, ...]) -> str:
    return _OFFER.format(tools=format_tools(tools), example=tools[0].name)


def _flatten_message(message: Message) -> Message:
    if message.role is Role.tool:
        return Message(role=Role.user, text=message.text)
    calls = "\n\n".join(_block(call) for call in message.calls)
    if not calls:
        return message
    return Message(role=message.role, text=f"{message.text}\n\n{calls}".strip())


def _block(call: ToolCall) -> str:
    return f'```json\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}\n```'
