"""What a run may spend, and what it spent."""

from __future__ import annotations

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
