"""Asking for an answer of one type: what cannot be read goes back to the model with the exact reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role
from redstart.core.context import Context
from redstart.core.noun import clip
from redstart.core.run import RunState
from redstart.ports.bundle import ProgressNote
from redstart.ports.model.port import Model
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import ParsedAnswer, read_answer, schema
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section

Value = TypeVar("Value")
Shape = TypeVar("Shape", bound=BaseModel)

REPAIRS = 2
"""How often a model is asked again for the same answer: who fails three times would fail a fourth time."""
SHOWN = 6000
"""How much of an answer that could not be read is shown to the model again."""

SHOWN_OF_CUT = 400
"""The same of one that did not come to its end: what goes round in circles goes on so where it is shown whole."""
OTHERWISE = 0.6
"""The temperature after an answer that did not come to its end: asked at 0 again, a model says the same again."""

_FINAL = frozenset({AnswerFault.budget, AnswerFault.refused})
"""Faults that asking again does not mend."""
_JSON_ONLY = "Answer again: the whole of it, as one JSON object in the form described above, with nothing around it."


class AnswerOutcome(NamedTuple, Generic[Value]):
    """What came of a question. `value` is None where no answer could be read: then `fault` says why."""

    value: Value | None
    answer: Answer
    """The last one that the model gave."""
    fault: str = ""
    repairs: int = 0
    """How often it was asked again."""


async def ask_for(model: Model, ask: Ask, shape: type[Shape], *, repairs: int = REPAIRS) -> AnswerOutcome[Shape]:
    """Asks for an answer of `shape`; a model that can be held to a schema is, the text of others is read tolerantly.

    At most `repairs` times it is told, in the same conversation, what was wrong with its answer. Raises what the model
    raises.
    """
    shaped = ask.model_copy(update={"shape": schema(shape)})
    return await ask_until(model, shaped, reader(ask, shape), note=json_note, repairs=repairs)


def reader(ask: Ask, shape: type[Shape]) -> Callable[[Answer], ParsedAnswer[Shape]]:
    """What reads the answers to `ask` as `shape`."""
    asked = "\n".join(message.text for message in ask.messages if message.role is Role.system)

    def read(answer: Answer) -> ParsedAnswer[Shape]:
        return read_answer(answer.text, shape, asked=asked, truncated=answer.fault is AnswerFault.truncated)

    return read


async def ask_until(
    model: Model, ask: Ask, read: Callable[[Answer], ParsedAnswer[Value]], *, note: Callable[[str], str], repairs: int
) -> AnswerOutcome[Value]:
    """Asks until `read` finds something in the answer, at most `repairs` times more. See `mend`."""
    return await mend(model, ask, await model.ask(ask), read, note=note, repairs=repairs)


async def mend(
    model: Model,
    ask: Ask,
    answer: Answer,
    read: Callable[[Answer], ParsedAnswer[Value]],
    *,
    note: Callable[[str], str],
    repairs: int,
) -> AnswerOutcome[Value]:
    """What `read` finds in `answer`, which `ask` was given; where that is nothing, the model is told why.

    `note` makes of the error what it is told, at most `repairs` times. An answer that was cut off is read too: it may
    be whole, with chatter after it. Raises what the model raises.
    """

    async def at_once(answer: Answer) -> ParsedAnswer[Value]:
        return read(answer)

    return await mend_tried(model, ask, answer, at_once, note=note, repairs=repairs)


async def mend_tried(
    model: Model,
    ask: Ask,
    answer: Answer,
    attempt: Callable[[Answer], Awaitable[ParsedAnswer[Value]]],
    *,
    note: Callable[[str], str],
    repairs: int,
) -> AnswerOutcome[Value]:
    """As `mend`, for an answer that has to be tried out before it is known whether it is of use."""
    turn = 0
    while answer.fault not in _FINAL:
        reading = await attempt(answer)
        if reading.value is not None:
            return AnswerOutcome(reading.value, answer, repairs=turn)
        error = why(answer, reading.error)
        if turn >= repairs:
            return AnswerOutcome(None, answer, error, turn)
        turn += 1
        cut = answer.fault is AnswerFault.truncated
        said = clip(answer.text, SHOWN_OF_CUT if cut else SHOWN).strip() or "(nothing)"
        # Of the turns before, only the last: two failed answers teach a model to fail.
        again = (
            Message(role=Role.assistant, text=said),
            Message(role=Role.user, text=note(f"{error}; be shorter" if cut else error)),
        )
        warmth = max(ask.temperature, OTHERWISE) if cut else ask.temperature
        answer = await model.ask(ask.model_copy(update={"messages": (*ask.messages, *again), "temperature": warmth}))
    return AnswerOutcome(None, answer, answer.fault.value if answer.fault else "", turn)


def why(answer: Answer, error: str) -> str:
    """The reason that an answer cannot be used, in words for the model and for the run's record."""
    if answer.fault is AnswerFault.empty:
        return "the answer was empty"
    if answer.fault is AnswerFault.truncated:
        return "the answer was cut off at the token limit" + (f": {error}" if error else "")
    return error


def repair_note(fault: str, form: str = "Answer again, in the form described above.") -> str:
    """What a model is told whose answer could not be used."""
    return f"Your answer could not be used: {fault.rstrip('.')}.\n\n{form}\n"


def json_note(fault: str) -> str:
    """The same, for an answer in JSON."""
    return repair_note(fault, _JSON_ONLY)


class WriterContext(NamedTuple):
    """What of the project its writer sees."""

    files: str
    """Its files and what they offer."""
    code: Context
    read: Callable[[str], bytes | None]
    example: tuple[str, str] | None
    """Path and text of a test that is there."""


def told_of(run: RunState) -> str:
    """What the test is about, in words."""
    plan = run.now.plan
    aims = (f"{subtask.title}\n{' '.join(subtask.criteria)}" for subtask in plan.subtasks) if plan else ()
    return "\n".join((run.spec.goal, *aims))


def about_test(run: RunState, goal: str, shown: WriterContext, answer: int, note: ProgressNote) -> tuple[Message, ...]:
    """The question about a goal in this section, with room for an answer of so many tokens."""
    spec = run.spec
    return fitted(
        note,
        "asked/reproduce",
        spec.asks.room(answer),
        goal=goal,
        hint=sections.hint(spec.hint),
        notes=sections.notes(shown.read),
        plan=sections.plan(run.now.plan),
        runner=section("The tests are run with", spec.suite.runner),
        files=section("Files", data("files", shown.files, 40_000)),
        code=sections.code(shown.code, shown.read),
        example=section("A test of this project", data(*shown.example)) if shown.example else "",
    )
