"""A question as a bounded conversation: the model may call tools before it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Set
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Message, Role, ToolCall
from redstart.core.frozen import clip
from redstart.ports.model.port import Model
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.model_tools.tool_calls import (
    RUN_TOOL,
    CallIds,
    get_text,
    normalize_arguments,
    parse_arguments,
    parse_written_calls,
)
from redstart.toolkit.model_tools.toolset import ToolResult, Toolset

AT_ONCE = 5
"""Tool calls of one turn; further ones are ignored."""
MAX_TOTAL_CHARACTERS = 60_000
"""Characters of all tool results of a question together: after that the model has to answer."""

_LAST = "That was the last look: no more are possible. Answer now, in the form that was asked for."


RunSnippet = Callable[[str], Awaitable[ToolResult]]
"""Runs a snippet and describes what it printed."""


class ConversationAnswer(NamedTuple):
    """The answer at the end of a conversation, and how many tool calls led to it.

    The answer's `calls` are calls that it requests although none was left. `ask` is the last form of the question, with
    all tool results: a follow-up question continues from there.
    """

    answer: Answer
    ask: Ask
    tool_call_count: int = 0


async def converse(
    model: Model,
    ask: Ask,
    toolset: Toolset,
    limit: int,
    *,
    is_answer: Callable[[str], bool],
    note: Callable[[str, bool], None],
    run_snippet: RunSnippet | None = None,
) -> ConversationAnswer:
    """Ask until the model answers instead of calling a tool: at most `limit` tool calls, and one turn more.

    Each turn is one call to the model, so it is recorded and paid for like any other; a tool result is data with its
    provenance. `is_answer` tells whether a text holds the requested answer: then a tool call written beside it is
    ignored. `note` is told of each tool call and whether it was served. With `run_snippet`, the model may also run
    snippets. With a limit of 0 it is one plain question.
    """
    if limit <= 0:
        return ConversationAnswer(await model.ask(ask), ask)
    ask = ask.model_copy(update={"tools": (*toolset.tools, RUN_TOOL) if run_snippet else toolset.tools})
    table, ids = _Table(toolset, run_snippet, limit, note), CallIds("look")
    while True:
        answer = await model.ask(ask)
        turn = _turn(answer, frozenset(tool.name for tool in ask.tools), is_answer)
        if answer.fault is not None or not turn.calls or not table.remaining:
            return ConversationAnswer(answer.model_copy(update=turn._asdict()), ask, table.used)
        calls = tuple(ids.assign(call) for call in turn.calls[:AT_ONCE])
        message = Message(role=Role.assistant, text=turn.text, calls=calls)
        ask = ask.model_copy(update={"messages": (*ask.messages, message, *await table.create_replies(calls))})


class _Turn(NamedTuple):
    text: str
    calls: tuple[ToolCall, ...]


def _turn(answer: Answer, names: Set[str], is_answer: Callable[[str], bool]) -> _Turn:
    """Return the model's text and its tool calls. Small models write their calls into the text."""
    if answer.calls:
        return _Turn(answer.text, answer.calls)
    parsed = parse_written_calls(answer.text, names)
    if not parsed.calls:
        return _Turn(answer.text, ())
    return _Turn(parsed.remaining_text, () if is_answer(parsed.remaining_text) else parsed.calls)


class _Table:
    """Serves tool calls and counts them. A refused one counts too, so that every conversation ends."""

    def __init__(
        self, toolset: Toolset, run_snippet: RunSnippet | None, limit: int, note: Callable[[str, bool], None]
    ) -> None:
        self._toolset, self._run_snippet, self._limit, self._note = toolset, run_snippet, limit, note
        self._served_calls: set[tuple[str, str]] = set()
        self._shown_characters = 0
        self.used = 0

    @property
    def remaining(self) -> int:
        return max(self._limit - self.used, 0) if self._shown_characters < MAX_TOTAL_CHARACTERS else 0

    async def create_replies(self, calls: tuple[ToolCall, ...]) -> list[Message]:
        replies = [Message(role=Role.tool, text=await self._serve_call(call), reply_to=call.id) for call in calls]
        remaining_note = f"({self.remaining} more {'look is' if self.remaining == 1 else 'looks are'} possible.)"
        last = replies[-1]
        return [
            *replies[:-1],
            last.model_copy(update={"text": f"{last.text}\n\n{remaining_note if self.remaining else _LAST}"}),
        ]

    async def _serve_call(self, call: ToolCall) -> str:
        if not self.remaining:
            return "Not shown: no look was left for it."
        self.used += 1
        request = (call.name, call.arguments)
        if request in self._served_calls:
            return "This was shown above already."
        self._served_calls.add(request)
        if self._run_snippet is not None and call.name == RUN_TOOL.name:
            arguments = normalize_arguments(call.name, parse_arguments(call) or {})
            result = await self._run_snippet(get_text(arguments, "snippet"))
        else:
            result = self._toolset.serve(call)
        description = result.source if not result.refused else f"{call.name} {clip(call.arguments, 100)}: {result.text}"
        self._note(clip(description, 200), not result.refused)
        if result.refused:
            # The text is ours, but it may quote the model.
            return wrap_untrusted("look", f"not shown: {result.text}")
        self._shown_characters += len(result.text)
        return wrap_untrusted(result.source, result.text)
