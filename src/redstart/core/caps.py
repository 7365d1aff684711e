"""What a run may spend, and what it spent."""

from __future__ import annotations

from typing import cast

from pydantic import model_validator

from redstart.core.noun import Noun


class Limits(Noun):
    """What a whole run may use. None means no limit of that kind."""

    attempts: int = 5
    minutes: float | None = 30.0
    usd: float | None = 2.0
    tokens: int | None = 400_000
    """Binds always; it is the only limit on money where a model's price is not known."""
    stall_warning: int | None = 12
    """Attempts in a row that bring nothing, after which the user is warned."""
    stall: int | None = 15
    """Attempts in a row that bring nothing, after which the run ends."""

    @model_validator(mode="before")
    @classmethod
    def _accept_old_name(cls, values: object) -> object:
        """Runs that were stored before call the attempts `iterations`."""
        if not isinstance(values, dict):
            return values
        given = dict(cast("dict[str, object]", values))
        return {"attempts": given.pop("iterations"), **given} if "iterations" in given else given


class Spend(Noun):
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Calls whose price is not known: `usd` does not count them."""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, more: Spend) -> Spend:
        return Spend(
            calls=self.calls + more.calls,
            input_tokens=self.input_tokens + more.input_tokens,
            output_tokens=self.output_tokens + more.output_tokens,
            usd=self.usd + more.usd,
            unpriced=self.unpriced + more.unpriced,
            seconds=round(self.seconds + more.seconds, 3),
        )
