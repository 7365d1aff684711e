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

HIDDEN = "key-that-must-not-be-seen"
"""The key for adapters that need one."""


READ = Tool(
    name="read",
    description="Lines of a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
"""A tool to offer."""


def say(text: str, fault: AnswerFault | None = None, calls: tuple[ToolCall, ...] = ()) -> Answer:
    return Answer(text=text, model="", fault=fault, calls=calls)


def asking(script: Script) -> list[Ask]:
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


async def _in_turn(model: Model, asks: Sequence[Ask]) -> list[Answer]:
    return [await model.ask(ask) for ask in asks]


async def _at_once(model: Model, asks: Sequence[Ask]) -> list[Answer]:
    return list(await asyncio.gather(*(model.ask(ask) for ask in asks)))


class ModelContract:
    costs = True
    """Whether its calls use tokens."""

    def opened(self, script: Script) -> AbstractContextManager[Model]:
        """Open a model that answers by the script inside the context."""
        raise NotImplementedError

    def answers(self, script: Script) -> list[Answer]:
        with self.opened(script) as model:
            return asyncio.run(_in_turn(model, asking(script)))

    def test_gives_the_text_as_it_was_said(self) -> None:
        text = "  \n```python\n\tx = 'naïve – 木'\n```\r\n\n  "
        answer = self.answers({"?": say(text)})[0]
        assert answer.text == text
        assert answer.fault is None
        assert answer.model

    def test_answers_each_question_for_itself_when_asked_at_once(self) -> None:
        script = {f"question {n}": say(f"answer {n}") for n in range(8)}
        with self.opened(script) as model:
            answers = asyncio.run(_at_once(model, asking(script)))
        assert [answer.text for answer in answers] == [f"answer {n}" for n in range(8)]

    def test_belongs_to_no_event_loop(self) -> None:
        script = {"one": say("1"), "two": say("2")}
        with self.opened(script) as model:
            answers = [asyncio.run(model.ask(ask)) for ask in asking(script)]
        assert [answer.text for answer in answers] == ["1", "2"]

    def test_says_what_was_used(self) -> None:
        usage = self.answers({"?" * 40: say("!" * 40)})[0].usage
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
    def test_an_answer_that_cannot_be_used_is_an_answer(self, text: str, fault: AnswerFault) -> None:
        answer = self.answers({"?": say(text, fault)})[0]
        assert (answer.text, answer.fault) == (text, fault)

    def test_a_call_of_a_tool_is_an_answer(self) -> None:
        call = ToolCall(id="call_1", name="read", arguments='{"path":"shop/cart.py"}')
        script = {"?": say("", calls=(call,))}
        ask = asking(script)[0].model_copy(update={"tools": (READ,)})
        with self.opened(script) as model:
            answer = asyncio.run(model.ask(ask))
        assert (answer.text, answer.fault, answer.calls) == ("", None, (call,))

    def test_a_conversation_with_calls_can_go_on(self) -> None:
        call = ToolCall(id="call_1", name="read", arguments='{"path":"shop/cart.py"}')
        script = {"go on": say("done")}
        ask = asking(script)[0]
        looked = (
            Message(role=Role.assistant, text="", calls=(call,)),
            Message(role=Role.tool, text="1 total = 0", reply_to="call_1"),
        )
        talk = (ask.messages[0], Message(role=Role.user, text="look"), *looked, ask.messages[1])
        with self.opened(script) as model:
            answer = asyncio.run(model.ask(ask.model_copy(update={"messages": talk, "tools": (READ,)})))
        assert answer.text == "done"

    def test_no_answer_is_a_model_error_that_says_so(self) -> None:
        with self.opened({"?": None}) as model, pytest.raises(ModelError) as caught:
            asyncio.run(model.ask(asking({"?": None})[0]))
        assert str(caught.value)
        assert HIDDEN not in f"{caught.value}{caught.value.remedy}{caught.value.__cause__}"

    def test_can_be_asked_again_after_an_error(self) -> None:
        script = {"bad": None, "good": say("fine")}
        bad, good = asking(script)
        with self.opened(script) as model:
            with pytest.raises(ModelError):
                asyncio.run(model.ask(bad))
            assert asyncio.run(model.ask(good)).text == "fine"
