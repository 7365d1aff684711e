"""A model with scripted answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from redstart.core.chat import Answer, AnswerFault, Ask, Usage


class ScriptEnded(AssertionError):
    """The code under test asked more questions than the script has answers."""


class ScriptedModel:
    """Answers from a script, in order, or by a function of the question. All questions are recorded in `asks`.

    A text becomes an `Answer` with a plausible usage, an `Answer` is returned unchanged, and an exception is raised.
    Raises `ScriptEnded` if the script runs out of answers.
    """

    def __init__(
        self,
        answers: Sequence[str | Answer | Exception] | Callable[[Ask], str | Answer],
        *,
        name: str = "scripted:model",
    ) -> None:
        self._answers = answers
        self._name = name
        self.asks: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        self.asks.append(ask)
        said = self._next(ask)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Answer):
            return said
        return Answer(
            text=said,
            model=self._name,
            usage=Usage(
                input_tokens=_tokens("".join(message.text for message in ask.messages)), output_tokens=_tokens(said)
            ),
            fault=None if said.strip() else AnswerFault.empty,
        )

    def _next(self, ask: Ask) -> str | Answer | Exception:
        if callable(self._answers):
            return self._answers(ask)
        if len(self.asks) > len(self._answers):
            raise ScriptEnded(f"the script has {len(self._answers)} answers; call {len(self.asks)} was {ask.question}")
        return self._answers[len(self.asks) - 1]


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
