"""A question as a bounded conversation: the model may call tools before it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Message, Role, ToolCall
from redstart.core.noun import clip
from redstart.ports.model.port import Model
from redstart.toolkit.base.text import data
from redstart.toolkit.looking.desk import Toolset

AT_ONCE = 5
"""Tool calls of one turn; further ones are ignored."""
SHOWN = 60_000
"""Characters of all tool results of a question together: after that the model has to answer."""

_LAST = "That was the last look: no more are possible. Answer now, in the form that was asked for."


class ConversationAnswer(NamedTuple):
    """The answer at the end of a conversation, and how many tool calls led to it.

    The answer's `calls` are calls that it requests although none was left. `ask` is the last form of the question, with
    all tool results: a follow-up question continues from there.
    """

    answer: Answer
    ask: Ask
    looks: int = 0


async def converse(
    model: Model,
    ask: Ask,
    desk: Toolset,
    limit: int,
    *,
    is_answer: Callable[[str], bool],
    note: Callable[[str, bool], None],
) -> ConversationAnswer:
    """Ask until the model answers instead of calling a tool: at most `limit` tool calls, and one turn more.

    Each turn is one call to the model, so it is recorded and paid for like any other; a tool result is data with its
    provenance. `is_answer` tells whether a text holds the requested answer: then a tool call written beside it is
    ignored. `note` is told of each tool call and whether it was served. With a limit of 0 it is one plain question.
    """
    if limit <= 0:
        return ConversationAnswer(await model.ask(ask), ask)
    ask = ask.model_copy(update={"tools": desk.tools})
    table = _Table(desk, limit, note)
    while True:
        answer = await model.ask(ask)
        turn = _turn(answer, desk, is_answer)
        if answer.fault is not None or not turn.calls or not table.left:
            return ConversationAnswer(answer.model_copy(update=turn._asdict()), ask, table.used)
        calls = tuple(call.model_copy(update={"id": table.fresh_id(call)}) for call in turn.calls[:AT_ONCE])
        said = Message(role=Role.assistant, text=turn.text, calls=calls)
        ask = ask.model_copy(update={"messages": (*ask.messages, said, *table.replies(calls))})


class _Turn(NamedTuple):
    text: str
    calls: tuple[ToolCall, ...]


def _turn(answer: Answer, desk: Toolset, is_answer: Callable[[str], bool]) -> _Turn:
    """Return the model's text and its tool calls. Small models write their calls into the text."""
    if answer.calls:
        return _Turn(answer.text, answer.calls)
    written = desk.written(answer.text)
    if not written.calls:
        return _Turn(answer.text, ())
    return _Turn(written.rest, () if is_answer(written.rest) else written.calls)


class _Table:
    """Serves tool calls and counts them. A refused one counts too, so that every conversation ends."""

    def __init__(self, desk: Toolset, limit: int, note: Callable[[str, bool], None]) -> None:
        self._desk, self._limit, self._note = desk, limit, note
        self._seen: set[tuple[str, str]] = set()
        self._ids: set[str] = set()
        self._shown = 0
        self.used = 0

    @property
    def left(self) -> int:
        return max(self._limit - self.used, 0) if self._shown < SHOWN else 0

    def fresh_id(self, call: ToolCall) -> str:
        """Return a call's own ID if it has one and no other call has it."""
        own = call.id if call.id and call.id not in self._ids else f"look-{len(self._ids) + 1}"
        while own in self._ids:
            own += "x"
        self._ids.add(own)
        return own

    def replies(self, calls: tuple[ToolCall, ...]) -> list[Message]:
        replies = [Message(role=Role.tool, text=self._reply(call), reply_to=call.id) for call in calls]
        left = f"({self.left} more {'look is' if self.left == 1 else 'looks are'} possible.)"
        last = replies[-1]
        return [*replies[:-1], last.model_copy(update={"text": f"{last.text}\n\n{left if self.left else _LAST}"})]

    def _reply(self, call: ToolCall) -> str:
        if not self.left:
            return "Not shown: no look was left for it."
        self.used += 1
        asked = (call.name, call.arguments)
        if asked in self._seen:
            return "This was shown above already."
        self._seen.add(asked)
        shown = self._desk.serve(call)
        asked_for = shown.source if not shown.refused else f"{call.name} {clip(call.arguments, 100)}: {shown.text}"
        self._note(clip(asked_for, 200), not shown.refused)
        if shown.refused:
            # The text is ours, but it may quote the model.
            return data("look", f"not shown: {shown.text}")
        self._shown += len(shown.text)
        return data(shown.source, shown.text)
