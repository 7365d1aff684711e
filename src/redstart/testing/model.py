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
        self.questions: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        self.questions.append(ask)
        answer = self._get_next_answer(ask)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer):
            return answer
        return Answer(
            text=answer,
            model=self._name,
            usage=Usage(
                input_tokens=_estimate_tokens("".join(message.text for message in ask.messages)),
                output_tokens=_estimate_tokens(answer),
            ),
            fault=None if answer.strip() else AnswerFault.empty,
        )

    def _get_next_answer(self, ask: Ask) -> str | Answer | Exception:
        if callable(self._answers):
            return self._answers(ask)
        if len(self.questions) > len(self._answers):
            raise ScriptEnded(
                f"the script has {len(self._answers)} answers; call {len(self.questions)} was {ask.question}"
            )
        return self._answers[len(self.questions) - 1]


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // 4)
