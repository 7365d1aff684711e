"""Ask for an answer of one type. An unreadable answer goes back to the model with the exact reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role
from redstart.core.context import Context
from redstart.core.frozen import clip
from redstart.core.run import RunState
from redstart.ports.bundle import ProgressNote
from redstart.ports.model.port import Model
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import ParsedAnswer, build_schema, read_answer
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section

Value = TypeVar("Value")
Shape = TypeVar("Shape", bound=BaseModel)

REPAIRS = 2
"""How often a model is asked again for the same answer: one that fails three times would fail a fourth time."""
MAX_SHOWN_CHARACTERS = 6000
"""How much of an unreadable answer is shown to the model again."""

MAX_SHOWN_IF_TRUNCATED = 400
"""How much of a cut-off answer is shown again: a model that repeats itself continues if it sees all of it."""
RETRY_TEMPERATURE = 0.6
"""The temperature after a cut-off answer: asked again at 0, a model repeats the same answer."""

_FINAL = frozenset({AnswerFault.budget, AnswerFault.refused})
"""Faults that asking again does not fix."""
_JSON_ONLY = "Answer again: the whole of it, as one JSON object in the form described above, with nothing around it."


class AnswerOutcome(NamedTuple, Generic[Value]):
    """The outcome of a question. If no answer could be read, `value` is None and `fault` says why."""

    value: Value | None
    answer: Answer
    """The model's last answer."""
    fault: str = ""
    repairs: int = 0
    """How often the model was asked again."""


async def ask_for(model: Model, ask: Ask, shape: type[Shape], *, repairs: int = REPAIRS) -> AnswerOutcome[Shape]:
    """Ask for an answer of `shape`, with a schema if the model supports one. Other answers are parsed tolerantly.

    At most `repairs` times, the same conversation tells the model what was wrong with its answer. Raises what the model
    raises.
    """
    ask_with_schema = ask.model_copy(update={"shape": build_schema(shape)})
    return await ask_until(model, ask_with_schema, create_reader(ask, shape), note=format_json_note, repairs=repairs)


def create_reader(ask: Ask, shape: type[Shape]) -> Callable[[Answer], ParsedAnswer[Shape]]:
    """Build the function that reads the answers to `ask` as `shape`."""
    question = "\n".join(message.text for message in ask.messages if message.role is Role.system)

    def read(answer: Answer) -> ParsedAnswer[Shape]:
        return read_answer(answer.text, shape, question=question, truncated=answer.fault is AnswerFault.truncated)

    return read


async def ask_until(
    model: Model, ask: Ask, read: Callable[[Answer], ParsedAnswer[Value]], *, note: Callable[[str], str], repairs: int
) -> AnswerOutcome[Value]:
    """Ask until `read` finds a value in the answer, at most `repairs` more times. See `repair_answer`."""
    return await repair_answer(model, ask, await model.ask(ask), read, note=note, repairs=repairs)


async def repair_answer(
    model: Model,
    ask: Ask,
    answer: Answer,
    read: Callable[[Answer], ParsedAnswer[Value]],
    *,
    note: Callable[[str], str],
    repairs: int,
) -> AnswerOutcome[Value]:
    """Return what `read` finds in `answer`, the reply to `ask`. If it finds nothing, tell the model why and ask again.

    `note` turns the error into the message for the model, at most `repairs` times. A cut-off answer is read too: it may
    be complete, with chatter after it. Raises what the model raises.
    """

    async def read_async(answer: Answer) -> ParsedAnswer[Value]:
        return read(answer)

    return await repair_after_trial(model, ask, answer, read_async, note=note, repairs=repairs)


async def repair_after_trial(
    model: Model,
    ask: Ask,
    answer: Answer,
    attempt: Callable[[Answer], Awaitable[ParsedAnswer[Value]]],
    *,
    note: Callable[[str], str],
    repairs: int,
) -> AnswerOutcome[Value]:
    """Do the same as `repair_answer` for an answer whose use is known only after a trial."""
    turn = 0
    while answer.fault not in _FINAL:
        reading = await attempt(answer)
        if reading.value is not None:
            return AnswerOutcome(reading.value, answer, repairs=turn)
        error = describe_fault(answer, reading.error)
        if turn >= repairs:
            return AnswerOutcome(None, answer, error, turn)
        turn += 1
        is_truncated = answer.fault is AnswerFault.truncated
        shown_answer = (
            clip(answer.text, MAX_SHOWN_IF_TRUNCATED if is_truncated else MAX_SHOWN_CHARACTERS).strip() or "(nothing)"
        )
        # Only the last failed answer is shown: two failed answers teach a model to fail.
        retry_messages = (
            Message(role=Role.assistant, text=shown_answer),
            Message(role=Role.user, text=note(f"{error}; be shorter" if is_truncated else error)),
        )
        temperature = max(ask.temperature, RETRY_TEMPERATURE) if is_truncated else ask.temperature
        answer = await model.ask(
            ask.model_copy(update={"messages": (*ask.messages, *retry_messages), "temperature": temperature})
        )
    return AnswerOutcome(None, answer, answer.fault.value if answer.fault else "", turn)


def describe_fault(answer: Answer, error: str) -> str:
    """Describe why an answer cannot be used, for the model and for the run's record."""
    if answer.fault is AnswerFault.empty:
        return "the answer was empty"
    if answer.fault is AnswerFault.truncated:
        return "the answer was cut off at the token limit" + (f": {error}" if error else "")
    return error


def repair_note(fault: str, form: str = "Answer again, in the form described above.") -> str:
    """Format the message to a model whose answer could not be used."""
    return f"Your answer could not be used: {fault.rstrip('.')}.\n\n{form}\n"


def format_json_note(fault: str) -> str:
    """Format the same message for an answer in JSON."""
    return repair_note(fault, _JSON_ONLY)


class WriterContext(NamedTuple):
    """What the writer of a test sees of the project."""

    files: str
    """The project's files and what they offer."""
    code: Context
    read: Callable[[str], bytes | None]
    example: tuple[str, str] | None
    """Path and text of an existing test."""
    tool_calls: int = 0
    """How many tools the writer may call before it answers."""


def describe_test_goal(run: RunState) -> str:
    """Describe what the test is about."""
    plan = run.now.plan
    aims = (f"{subtask.title}\n{' '.join(subtask.criteria)}" for subtask in plan.subtasks) if plan else ()
    return "\n".join((run.spec.goal, *aims))


def build_test_question(
    run: RunState, goal: str, context: WriterContext, answer: int, note: ProgressNote
) -> tuple[Message, ...]:
    """Build the question about a goal in this section, with room for an answer of `answer_tokens` tokens."""
    spec, question, tools = run.spec, "asked/reproduce", dict[str, str]()
    if context.tool_calls:
        question = "session/reproduce"
        tools["ask"] = format_section("Now", f"At most {context.tool_calls} tool calls are possible.")
    return fit_messages(
        note,
        question,
        spec.asks.compute_question_tokens(answer),
        goal=goal,
        hint=sections.build_hint_section(spec.hint),
        notes=sections.build_notes_section(context.read),
        plan=sections.plan(run.now.plan),
        runner=format_section("The tests are run with", spec.suite.runner),
        files=format_section("Files", wrap_untrusted("files", context.files, 40_000)),
        code=sections.build_code_section(context.code, context.read),
        example=format_section("A test of this project", wrap_untrusted(*context.example)) if context.example else "",
        **tools,
    )
