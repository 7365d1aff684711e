"""A question as a bounded conversation: the model may look around before it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Message, Role, ToolCall
from redstart.core.noun import clip
from redstart.ports.model.port import Model
from redstart.toolkit.base.text import data
from redstart.toolkit.looking.desk import Toolset

AT_ONCE = 5
"""Calls of one turn; further ones are as if they had not been made."""
SHOWN = 60_000
"""Characters of all looks of a question together: then it has to be answered."""

_LAST = "That was the last look: no more are possible. Answer now, in the form that was asked for."


class ConversationAnswer(NamedTuple):
    """The answer at the end of a conversation, and how many looks led to it.

    The answer's `calls` are looks that it asks for although none was left. `ask` is the question as it was put last,
    with all that was shown: whoever wants to ask back goes on from there.
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
    """Asks until the model answers instead of looking, at most `limit` looks and as many turns and one long.

    Each turn is one call to the model, so that it is recorded and paid for like any other; what a look shows is data
    with its provenance. `is_answer` tells whether a text holds what was asked for: then a look that is written beside
    it counts for nothing. `note` is told of each look and whether it was served. With a limit of 0 it is one plain
    question.
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
    """What the model says and what it wants to see. Small models write their calls into the text."""
    if answer.calls:
        return _Turn(answer.text, answer.calls)
    written = desk.written(answer.text)
    if not written.calls:
        return _Turn(answer.text, ())
    return _Turn(written.rest, () if is_answer(written.rest) else written.calls)


class _Table:
    """Serves looks and counts them: one that is refused counts too, so that every conversation ends."""

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
        """A call's own id where it has one that no other has."""
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
            # The words are ours, but they may quote what the model wrote.
            return data("look", f"not shown: {shown.text}")
        self._shown += len(shown.text)
        return data(shown.source, shown.text)
