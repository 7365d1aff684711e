"""A working session: one conversation in which a model looks, edits, runs and submits, in bounded turns."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple, Protocol

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tool, ToolCall
from redstart.core.frozen import clip, format_count
from redstart.ports.model.port import Model
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.model_tools.tool_calls import CallIds, parse_written_calls
from redstart.toolkit.model_tools.toolset import ToolResult

AT_ONCE = 8
"""Tool calls of one turn; further ones are not served."""
REMINDERS = 3
"""How often a model that neither calls a tool nor submits is reminded to."""
SUBMIT = "submit"

_FINAL = frozenset({AnswerFault.budget, AnswerFault.refused})
_NONE_LEFT = "No tool call is left. Submit now what you have, or say why there is nothing to submit."
_CUT_OFF = "Your answer was cut off at the token limit. Go on in smaller steps."


class Workbench(Protocol):
    """The copy that the model works on, and the tools that do so."""

    tools: tuple[Tool, ...]
    is_submitted: bool

    async def serve(self, call: ToolCall) -> ToolResult:
        """Answer any call with a result of bounded size. Raises what the sandbox raises."""
        ...

    async def take_text(self, text: str) -> str:
        """Use an answer without tool calls: edits, or the end of the work. Return what to tell the model; empty if the
        work has ended."""
        ...


class SessionEnd(NamedTuple):
    """The last answer of a session, all of its messages, and the number of served tool calls."""

    answer: Answer
    messages: tuple[Message, ...]
    tool_call_count: int


async def work(
    model: Model,
    ask: Ask,
    bench: Workbench,
    limit: int,
    *,
    shorten: Callable[[tuple[Message, ...]], tuple[Message, ...]],
    note: Callable[[str, bool], None],
) -> SessionEnd:
    """Let the model work until it submits, has no tool call left or cannot go on.

    Each answer is one call to the model, and each execution one of the sandbox: both are recorded, so an interrupted
    session resumes where it stopped. `shorten` makes room in messages that fill the model's window. `note` is told of
    each tool call and whether it was served.
    """
    session = _Session(bench, limit, note, ask.messages)
    ask = ask.model_copy(update={"tools": bench.tools})
    while True:
        ask = ask.model_copy(update={"messages": shorten(session.messages)})
        session.messages = ask.messages
        answer = await model.ask(ask)
        if answer.fault in _FINAL or not await session.take(answer):
            return SessionEnd(answer, session.messages, session.served)


class _Session:
    def __init__(
        self, bench: Workbench, limit: int, note: Callable[[str, bool], None], messages: tuple[Message, ...]
    ) -> None:
        self._bench, self._limit, self._note = bench, limit, note
        self._names: Set[str] = frozenset(tool.name for tool in bench.tools)
        self._ids = CallIds("call", (call.id for message in messages for call in message.calls))
        self._reminders = 0
        self._was_last = False
        self.messages = messages
        self.served = 0

    async def take(self, answer: Answer) -> bool:
        """Serve what an answer asks for, and add both to the messages. Return whether the model is asked again."""
        written = parse_written_calls(answer.text, self._names)
        text, requested_calls = (answer.text, answer.calls) if answer.calls else (written.remaining_text, written.calls)
        calls = tuple(self._ids.assign(call) for call in requested_calls[:AT_ONCE])
        self.messages = (
            *self.messages,
            Message(role=Role.assistant, text=text or ("" if calls else "(nothing)"), calls=calls),
        )
        if not calls:
            return await self._take_text(answer)
        for call in calls:
            self._add_reply(call, await self._serve(call))
        if self._bench.is_submitted or self._was_last:
            return False
        remaining = self._limit - self.served
        self._was_last = remaining <= 0
        last = self.messages[-1]
        count = f"({remaining} more tool {'call is' if remaining == 1 else 'calls are'} possible.)"
        suffix = _NONE_LEFT if self._was_last else count
        if unserved := len(requested_calls) - len(calls):
            suffix = f"Not served: {format_count(unserved, 'further call')}; at most {AT_ONCE} at once. {suffix}"
        self.messages = (*self.messages[:-1], last.model_copy(update={"text": f"{last.text}\n\n{suffix}"}))
        return True

    async def _take_text(self, answer: Answer) -> bool:
        reply = _CUT_OFF if answer.fault is AnswerFault.truncated else await self._bench.take_text(answer.text)
        if not reply:
            return False
        self.messages = (*self.messages, Message(role=Role.user, text=reply))
        self._reminders += 1
        return self._reminders <= REMINDERS and not self._was_last

    async def _serve(self, call: ToolCall) -> str:
        if self._bench.is_submitted:
            return "Not served: the copy has been submitted."
        if self.served >= self._limit and call.name != SUBMIT:
            return "Not served: no tool call was left for it."
        self.served += call.name != SUBMIT
        result = await self._bench.serve(call)
        description = f"{call.name} {clip(call.arguments, 100)}: {result.text}" if result.refused else result.source
        self._note(clip(description, 200), not result.refused)
        # The text of a refusal is ours, but it may quote the model or the repo.
        return wrap_untrusted(call.name, f"refused: {result.text}") if result.refused else wrap_untrusted(*result[:2])

    def _add_reply(self, call: ToolCall, text: str) -> None:
        self.messages = (*self.messages, Message(role=Role.tool, text=text, reply_to=call.id))
