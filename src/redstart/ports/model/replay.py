"""A model that was recorded: it answers by where in the run it is asked, and costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import StringConstraints, ValidationError

from redstart.core.chat import Answer, Ask, Fault, Usage
from redstart.core.errors import ConfigError, ModelError
from redstart.core.noun import Noun

Site = Annotated[str, StringConstraints(pattern=r"^\d+/[a-z]+/\d+$")]
"""Where in a run a call stands: `attempt/step/ordinal`, such as `1/patch/0`."""


class Taped(Noun):
    """One recorded answer, with what it cost when it was recorded."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    fault: Fault | None = None


class Cassette(Noun):
    """The recorded calls of one run, in a JSON file that a person can read and edit."""

    v: Literal[1] = 1
    model: str
    calls: dict[Site, Taped] = {}

    @classmethod
    def load(cls, path: Path) -> Cassette:
        """Raises `ConfigError` where the file cannot be read or is no cassette."""
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise ConfigError(f"the recording {path.name} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = "/".join(str(part) for part in first["loc"])
            raise ConfigError(f"{path.name} is no recording of a model: {where}: {first['msg']}") from error

    def save(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")

    def with_call(self, site: Site, answer: Answer) -> Cassette:
        """This cassette and one more call."""
        taped = Taped(
            text=answer.text,
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


class Replay:
    """Answers each question with what the cassette holds for its `site`. Its usage is zero: nothing is spent.

    Raises `ModelError` naming the site where the cassette has no such call; it never asks a real model instead.
    """

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette

    async def ask(self, ask: Ask) -> Answer:
        taped = self._cassette.calls.get(ask.site)
        if taped is None:
            raise ModelError(
                f"the recording of {self._cassette.model} has no call {ask.site or '(without a site)'!r}",
                remedy="the run took another course than the recorded one; record it again",
            )
        return Answer(text=taped.text, model=self._cassette.model, fault=taped.fault)
