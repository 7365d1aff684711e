"""The contract of every model.

A test class derives from `ModelContract` and defines `opened`. The keys of a script are the questions; the site of each
is its position in the script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import pytest

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, Tier, Tool, ToolCall
from redstart.core.errors import ModelError
from redstart.ports.model.port import Model

Script = Mapping[str, Answer | None]
"""Maps user messages to answers; None means that no answer is available."""

HIDDEN_VALUE = "key-that-must-not-be-seen"
"""The key for adapters that need one."""


READ = Tool(
    name="read",
    description="Lines of a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
"""A tool to offer."""


def create_answer(text: str, fault: AnswerFault | None = None, calls: tuple[ToolCall, ...] = ()) -> Answer:
    return Answer(text=text, model="", fault=fault, calls=calls)


def create_requests(script: Script) -> list[Ask]:
    """Make one question for each key of the script, in order."""
    return [
        Ask(
            question="patch",
            tier=Tier.strong,
            messages=(Message(role=Role.system, text="You repair code."), Message(role=Role.user, text=text)),
            max_tokens=100,
            site=f"1/patch/{ordinal}",
        )
        for ordinal, text in enumerate(script)
    ]


async def _in_turn(model: Model, requests: Sequence[Ask]) -> list[Answer]:
    return [await model.ask(ask) for ask in requests]


async def _ask_at_once(model: Model, requests: Sequence[Ask]) -> list[Answer]:
    return list(await asyncio.gather(*(model.ask(ask) for ask in requests)))


class ModelContract:
    costs = True
    """Whether its calls use tokens."""

    def open_model(self, script: Script) -> AbstractContextManager[Model]:
        """Open a model that answers by the script inside the context."""
        raise NotImplementedError

    def collect_answers(self, script: Script) -> list[Answer]:
        with self.open_model(script) as model:
            return asyncio.run(_in_turn(model, create_requests(script)))

    def test_answer_text_is_returned_unchanged(self) -> None:
        text = "  \n```python\n\tx = 'naïve – 木'\n```\r\n\n  "
        answer = self.collect_answers({"?": create_answer(text)})[0]
        assert answer.text == text
        assert answer.fault is None
        assert answer.model

    def test_concurrent_questions_get_their_own_answers(self) -> None:
        script = {f"question {n}": create_answer(f"answer {n}") for n in range(8)}
        with self.open_model(script) as model:
            answers = asyncio.run(_ask_at_once(model, create_requests(script)))
        assert [answer.text for answer in answers] == [f"answer {n}" for n in range(8)]

    def test_model_works_across_event_loops(self) -> None:
        script = {"one": create_answer("1"), "two": create_answer("2")}
        with self.open_model(script) as model:
            answers = [asyncio.run(model.ask(ask)) for ask in create_requests(script)]
        assert [answer.text for answer in answers] == ["1", "2"]

    def test_usage_is_reported(self) -> None:
        usage = self.collect_answers({"?" * 40: create_answer("!" * 40)})[0].usage
        assert (usage.input_tokens > 0, usage.output_tokens > 0) == (self.costs, self.costs)
        assert usage.cached_tokens == 0
        if not self.costs:
            assert usage.usd == 0.0

    @pytest.mark.parametrize(
        ("text", "fault"),
        [
            ("half of it", AnswerFault.truncated),
            ("", AnswerFault.truncated),
            ("", AnswerFault.refused),
            ("", AnswerFault.empty),
        ],
    )
    def test_unusable_answer_is_returned_with_its_fault(self, text: str, fault: AnswerFault) -> None:
        answer = self.collect_answers({"?": create_answer(text, fault)})[0]
        assert (answer.text, answer.fault) == (text, fault)

    def test_tool_call_is_returned_as_an_answer(self) -> None:
        call = ToolCall(id="call_1", name="read", arguments='{"path":"shop/cart.py"}')
        script = {"?": create_answer("", calls=(call,))}
        ask = create_requests(script)[0].model_copy(update={"tools": (READ,)})
        with self.open_model(script) as model:
            answer = asyncio.run(model.ask(ask))
        assert (answer.text, answer.fault, answer.calls) == ("", None, (call,))

    def test_conversation_can_continue_after_tool_calls(self) -> None:
        call = ToolCall(id="call_1", name="read", arguments='{"path":"shop/cart.py"}')
        script = {"go on": create_answer("done")}
        ask = create_requests(script)[0]
        tool_messages = (
            Message(role=Role.assistant, text="", calls=(call,)),
            Message(role=Role.tool, text="1 total = 0", reply_to="call_1"),
        )
        talk = (ask.messages[0], Message(role=Role.user, text="look"), *tool_messages, ask.messages[1])
        with self.open_model(script) as model:
            answer = asyncio.run(model.ask(ask.model_copy(update={"messages": talk, "tools": (READ,)})))
        assert answer.text == "done"

    def test_missing_answer_raises_a_model_error_without_the_key(self) -> None:
        with self.open_model({"?": None}) as model, pytest.raises(ModelError) as caught:
            asyncio.run(model.ask(create_requests({"?": None})[0]))
        assert str(caught.value)
        assert HIDDEN_VALUE not in f"{caught.value}{caught.value.remedy}{caught.value.__cause__}"

    def test_model_can_be_asked_again_after_an_error(self) -> None:
        script = {"bad": None, "good": create_answer("fine")}
        bad, good = create_requests(script)
        with self.open_model(script) as model:
            with pytest.raises(ModelError):
                asyncio.run(model.ask(bad))
            assert asyncio.run(model.ask(good)).text == "fine"
