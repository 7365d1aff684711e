"""A recorded model: it repeats the answers of an earlier run, and costs nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, ValidationError

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, ToolCall, Usage
from redstart.core.errors import ConfigError, ModelError, NewerFormat
from redstart.core.formats import (
    CASSETTE,
    StorageFormat,
    StoredValue,
    describe_recorded_version,
    get_current_version,
    read,
)
from redstart.core.frozen import FrozenValue, clip

CallSite = Annotated[str, StringConstraints(pattern=r"^\d+/[a-z]+(@\d+)?/\d+$")]
"""The position of a call in a run: `attempt/step/ordinal`, such as `1/patch/0`."""

DIFF_LINES = 12
"""The most lines of a diff that the error for a missing call shows."""

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|\b\d+\.\d+ ?s(?:ec|econds)?\b|pytest-of-\w+/pytest-\d+")
"""Text that differs between two runs of the same tests: addresses, times, temporary directories. It is not compared."""


def _join_lines(value: object) -> object:
    return "\n".join(str(line) for line in value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _in_lines(text: str) -> str | list[str]:
    return text.split("\n") if "\n" in text else text


Text = Annotated[str, BeforeValidator(_join_lines), PlainSerializer(_in_lines)]
"""A text that is stored as a list of lines if it has several, so that a person can read and edit it."""


class RecordedMessage(FrozenValue):
    """A message of a recorded question."""

    role: Role
    text: Text
    calls: tuple[ToolCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    reply_to: str = Field(default="", exclude_if=lambda id_: not id_)

    @classmethod
    def from_message(cls, message: Message) -> RecordedMessage:
        return cls(role=message.role, text=message.text, calls=message.calls, reply_to=message.reply_to)

    @property
    def comparable_text(self) -> str:
        """The whole message as text, for comparison. Text that changes with every run is replaced by `…`."""
        calls = (f"\ncalls {call.name} {call.arguments} as {call.id}" for call in self.calls)
        prefix = f"in reply to {self.reply_to}\n" if self.reply_to else ""
        return _VOLATILE.sub("…", prefix + self.text + "".join(calls))


class RecordedAnswer(FrozenValue):
    """One recorded answer, with its question and its cost at the time of the recording."""

    messages: tuple[RecordedMessage, ...] | None = None
    """None if the recording does not contain the question. Then only the site counts."""
    text: Text
    calls: tuple[ToolCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    model: str = Field(default="", exclude_if=lambda name: not name)
    """The model that answered, if it was not the cassette's own."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    fault: AnswerFault | None = None


class Cassette(StoredValue):
    """The recorded calls of one run, stored in a JSON file that a person can read and edit."""

    stored_as: ClassVar[StorageFormat] = CASSETTE
    v: Literal[3] = 3
    recorded_by: str = Field(default="", exclude_if=lambda version: not version)
    """The version of Redstart. Empty if it is unknown or a person wrote the file."""
    model: str
    calls: dict[CallSite, RecordedAnswer] = {}

    @classmethod
    def load(cls, path: Path) -> Cassette:
        """Load a cassette. Raises `ConfigError` if the file cannot be read or is not a cassette."""
        try:
            return read(cls, path.read_bytes())
        except NewerFormat as error:
            raise ConfigError(f"{path.name}: {error}", remedy=error.remedy) from error
        except OSError as error:
            raise ConfigError(f"the recording {path.name} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first_error = error.errors(include_url=False)[0]
            location = "/".join(str(part) for part in first_error["loc"])
            raise ConfigError(f"{path.name} is not a recording of a model: {location}: {first_error['msg']}") from error

    def save(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")

    def with_call(self, site: CallSite, answer: Answer, question: Sequence[Message] | None = None) -> Cassette:
        """Return a copy with one more call. With `question`, only an identical question gets this answer."""
        taped = RecordedAnswer(
            messages=None if question is None else tuple(RecordedMessage.from_message(message) for message in question),
            text=answer.text,
            calls=answer.calls,
            model="" if answer.model == self.model else answer.model,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
            usd=answer.usage.usd,
            fault=answer.fault,
        )
        return self.model_copy(update={"calls": {**self.calls, site: taped}})

    @property
    def usage(self) -> Usage:
        """The total usage of the recorded calls. It has no price if one of them has none."""
        prices = [call.usd for call in self.calls.values() if call.usd is not None]
        return Usage(
            input_tokens=sum(call.input_tokens for call in self.calls.values()),
            output_tokens=sum(call.output_tokens for call in self.calls.values()),
            usd=sum(prices) if len(prices) == len(self.calls) else None,
        )


class ReplayModel:
    """Answers each question from a cassette. Its usage is zero: nothing is spent.

    The answer is the call recorded at the question's `site` if the questions match, else any call whose question
    matches. If the cassette does not contain the questions, the site alone decides.

    Raises `ModelError` if no call matches, naming the first message that differs, with a short diff of it. It never
    falls back to a real model.
    """

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette

    async def ask(self, ask: Ask) -> Answer:
        question = tuple(RecordedMessage.from_message(message) for message in ask.messages)
        taped = self._find_call(ask.site, question)
        if taped is None:
            raise ModelError(
                f"the recording of {self._cassette.model} {self._explain_miss(ask.site, question)}",
                remedy="this run differs from the recorded one: its repo, its lessons (REDSTART_HOME) or "
                "redstart itself changed; restore them, or record the run again",
            )
        return Answer(text=taped.text, model=taped.model or self._cassette.model, calls=taped.calls, fault=taped.fault)

    def _find_call(self, site: str, question: Sequence[RecordedMessage]) -> RecordedAnswer | None:
        recorded = self._cassette.calls.get(site)
        if recorded is not None and (
            recorded.messages is None or _find_first_difference(recorded.messages, question) is None
        ):
            return recorded
        matches = (
            call
            for call in self._cassette.calls.values()
            if call.messages is not None and _find_first_difference(call.messages, question) is None
        )
        return next(matches, None)

    def _explain_miss(self, site: str, question: Sequence[RecordedMessage]) -> str:
        """Explain why there is no answer: name the nearest call and where the question differs from it."""
        label = site or "(without a site)"
        nearest = self._find_nearest(site, question)
        if nearest is None:
            return f"has no call {label!r}"
        recorded = self._cassette.calls[nearest].messages or ()
        index = _find_first_difference(recorded, question) or 0
        place = f"has another question at {label!r}"
        if nearest != site:
            place = f"has no call {label!r}; the nearest is {nearest!r}"
        version = self._cassette.recorded_by
        if version != get_current_version():
            place = (
                f"was made by {describe_recorded_version(version)}, and "
                f"{describe_recorded_version(get_current_version())} asks different questions: it {place}"
            )
        return f"{place}: {_describe_difference(recorded, question, index)}"

    def _find_nearest(self, site: str, question: Sequence[RecordedMessage]) -> str | None:
        """Return the call at this site, else the call of the same step that has the most in common with it."""
        calls = {name: call.messages for name, call in self._cassette.calls.items() if call.messages}
        if site in calls or not calls:
            return site if site in calls else None
        step = site.split("/")[1] if "/" in site else ""
        alike: Callable[[str], int] = lambda name: _find_first_difference(calls[name], question) or 0  # noqa: E731
        same_step = [name for name in calls if name.split("/")[1] == step]
        return max(same_step or calls, key=alike)


def _find_first_difference(recorded: Sequence[RecordedMessage], question: Sequence[RecordedMessage]) -> int | None:
    """Return the index of the first message that differs, or None if all are equal."""
    for number, (old, new) in enumerate(zip(recorded, question, strict=False)):
        if (old.role, old.comparable_text) != (new.role, new.comparable_text):
            return number
    return None if len(recorded) == len(question) else min(len(recorded), len(question))


def _describe_difference(recorded: Sequence[RecordedMessage], question: Sequence[RecordedMessage], index: int) -> str:
    if index >= len(question):
        return f"message {index + 1} ({recorded[index].role.value}) was recorded but is missing now"
    new = question[index]
    if index >= len(recorded):
        return f"message {index + 1} ({new.role.value}) is not in the recording: {clip(new.comparable_text, 200)}"
    old = recorded[index]
    if old.role is not new.role:
        return f"message {index + 1} has role {new.role.value}, but was recorded with role {old.role.value}"
    lines = difflib.unified_diff(
        old.comparable_text.splitlines(), new.comparable_text.splitlines(), "recorded", "asked now", "", "", 1, ""
    )
    diff_lines = [clip(line, 200) for line in lines]
    remaining = len(diff_lines) - DIFF_LINES
    suffix = [f"… and {remaining} more lines"] if remaining > 0 else []
    return "\n".join((f"message {index + 1} ({new.role.value}) differs", *diff_lines[:DIFF_LINES], *suffix))
