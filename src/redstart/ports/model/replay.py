"""A model that was recorded: it answers the questions that it was asked then, and costs nothing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, ValidationError

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Role, ToolCall, Usage
from redstart.core.errors import ConfigError, ModelError, NewerFormat
from redstart.core.formats import CASSETTE, StorageFormat, StoredValue, read, recorder, this_version
from redstart.core.noun import FrozenValue, clip

Site = Annotated[str, StringConstraints(pattern=r"^\d+/[a-z]+(@\d+)?/\d+$")]
"""Where in a run a call stands: `attempt/step/ordinal`, such as `1/patch/0`."""

DIFF_LINES = 12
"""How much of a difference a miss shows."""

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|\b\d+\.\d+ ?s(?:ec|econds)?\b|pytest-of-\w+/pytest-\d+")
"""What differs between two runs of the same tests: addresses, times, temporary folders. It is not compared."""


def _joined(value: object) -> object:
    return "\n".join(str(line) for line in value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _in_lines(text: str) -> str | list[str]:
    return text.split("\n") if "\n" in text else text


Text = Annotated[str, BeforeValidator(_joined), PlainSerializer(_in_lines)]
"""A text that is written as the list of its lines where it has several, so that a person can read and edit it."""


class RecordedMessage(FrozenValue):
    """A message of a recorded question."""

    role: Role
    text: Text
    calls: tuple[ToolCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    reply_to: str = Field(default="", exclude_if=lambda id_: not id_)

    @classmethod
    def of(cls, message: Message) -> RecordedMessage:
        return cls(role=message.role, text=message.text, calls=message.calls, reply_to=message.reply_to)

    @property
    def shown(self) -> str:
        """All of it as text, for comparing; what changes with every run is blotted out."""
        calls = (f"\ncalls {call.name} {call.arguments} as {call.id}" for call in self.calls)
        answered = f"in reply to {self.reply_to}\n" if self.reply_to else ""
        return _VOLATILE.sub("…", answered + self.text + "".join(calls))


class RecordedAnswer(FrozenValue):
    """One recorded answer, with what was asked and what it cost when it was recorded."""

    messages: tuple[RecordedMessage, ...] | None = None
    """None in a recording that does not say what was asked: then only the site counts."""
    text: Text
    calls: tuple[ToolCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    model: str = Field(default="", exclude_if=lambda name: not name)
    """Who answered, where it was not the cassette's own model."""
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    fault: AnswerFault | None = None


class Cassette(StoredValue):
    """The recorded calls of one run, in a JSON file that a person can read and edit."""

    stored_as: ClassVar[StorageFormat] = CASSETTE
    v: Literal[3] = 3
    recorded_by: str = Field(default="", exclude_if=lambda version: not version)
    """The version of Redstart; empty where it is not known, or a person wrote the file."""
    model: str
    calls: dict[Site, RecordedAnswer] = {}

    @classmethod
    def load(cls, path: Path) -> Cassette:
        """Raises `ConfigError` where the file cannot be read or is no cassette."""
        try:
            return read(cls, path.read_bytes())
        except NewerFormat as error:
            raise ConfigError(f"{path.name}: {error}", remedy=error.remedy) from error
        except OSError as error:
            raise ConfigError(f"the recording {path.name} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = "/".join(str(part) for part in first["loc"])
            raise ConfigError(f"{path.name} is no recording of a model: {where}: {first['msg']}") from error

    def save(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")

    def with_call(self, site: Site, answer: Answer, asked: Sequence[Message] | None = None) -> Cassette:
        """This cassette and one more call. With `asked` it is given again only to a question that is the same."""
        taped = RecordedAnswer(
            messages=None if asked is None else tuple(RecordedMessage.of(message) for message in asked),
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
        """What the recorded calls cost together when they were recorded; no price where one of them had none."""
        prices = [call.usd for call in self.calls.values() if call.usd is not None]
        return Usage(
            input_tokens=sum(call.input_tokens for call in self.calls.values()),
            output_tokens=sum(call.output_tokens for call in self.calls.values()),
            usd=sum(prices) if len(prices) == len(self.calls) else None,
        )


class ReplayModel:
    """Answers each question with what the cassette holds for it. Its usage is zero: nothing is spent.

    That is the call at the question's `site` if it was asked the same there; else another one that was. Where the
    cassette does not say what was asked, the site alone decides.

    Raises `ModelError` where there is none, naming the first message that differs, with a short diff of it. It never
    asks a real model instead.
    """

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette

    async def ask(self, ask: Ask) -> Answer:
        asked = tuple(RecordedMessage.of(message) for message in ask.messages)
        taped = self._found(ask.site, asked)
        if taped is None:
            raise ModelError(
                f"the recording of {self._cassette.model} {self._miss(ask.site, asked)}",
                remedy="the run took another course than the recorded one: its repo, its lessons (REDSTART_HOME) or "
                "redstart itself differ; put them back as they were, or record it again",
            )
        return Answer(text=taped.text, model=taped.model or self._cassette.model, calls=taped.calls, fault=taped.fault)

    def _found(self, site: str, asked: Sequence[RecordedMessage]) -> RecordedAnswer | None:
        here = self._cassette.calls.get(site)
        if here is not None and (here.messages is None or _first_difference(here.messages, asked) is None):
            return here
        same = (
            call
            for call in self._cassette.calls.values()
            if call.messages is not None and _first_difference(call.messages, asked) is None
        )
        return next(same, None)

    def _miss(self, site: str, asked: Sequence[RecordedMessage]) -> str:
        """Why there is no answer: the call that comes nearest, and where the question leaves it."""
        named = site or "(without a site)"
        nearest = self._nearest(site, asked)
        if nearest is None:
            return f"has no call {named!r}"
        recorded = self._cassette.calls[nearest].messages or ()
        at = _first_difference(recorded, asked) or 0
        place = f"has another question at {named!r}"
        if nearest != site:
            place = f"has no call {named!r}; the nearest is {nearest!r}"
        by = self._cassette.recorded_by
        if by != this_version():
            place = f"was recorded by {recorder(by)}, and {recorder(this_version())} asks otherwise: it {place}"
        return f"{place}: {_told(recorded, asked, at)}"

    def _nearest(self, site: str, asked: Sequence[RecordedMessage]) -> str | None:
        """The call that was asked at this site, else the one of the same step that has most in common."""
        calls = {name: call.messages for name, call in self._cassette.calls.items() if call.messages}
        if site in calls or not calls:
            return site if site in calls else None
        step = site.split("/")[1] if "/" in site else ""
        alike: Callable[[str], int] = lambda name: _first_difference(calls[name], asked) or 0  # noqa: E731
        of_step = [name for name in calls if name.split("/")[1] == step]
        return max(of_step or calls, key=alike)


def _first_difference(recorded: Sequence[RecordedMessage], asked: Sequence[RecordedMessage]) -> int | None:
    """The number of the first message that is not the same, counted from 0; None where all are."""
    for number, (old, new) in enumerate(zip(recorded, asked, strict=False)):
        if (old.role, old.shown) != (new.role, new.shown):
            return number
    return None if len(recorded) == len(asked) else min(len(recorded), len(asked))


def _told(recorded: Sequence[RecordedMessage], asked: Sequence[RecordedMessage], at: int) -> str:
    if at >= len(asked):
        return f"message {at + 1} ({recorded[at].role.value}) was recorded and is not asked now"
    new = asked[at]
    if at >= len(recorded):
        return f"message {at + 1} ({new.role.value}) was not recorded: {clip(new.shown, 200)}"
    old = recorded[at]
    if old.role is not new.role:
        return f"message {at + 1} is of the {new.role.value}, recorded was one of the {old.role.value}"
    lines = difflib.unified_diff(old.shown.splitlines(), new.shown.splitlines(), "recorded", "asked now", "", "", 1, "")
    shown = [clip(line, 200) for line in lines]
    left = len(shown) - DIFF_LINES
    more = [f"… and {left} lines more"] if left > 0 else []
    return "\n".join((f"message {at + 1} ({new.role.value}) differs", *shown[:DIFF_LINES], *more))
