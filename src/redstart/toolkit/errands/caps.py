"""What errands have used of a run's caps, and what is left for the next ones."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.run import Ended, Limits, Spend


def spent(ended: Iterable[Ended]) -> Spend:
    """What these errands spent together."""
    total = Spend()
    for one in ended:
        total = total.plus(one.spend)
    return total


def rest(limits: Limits, spend: Spend, shares: int = 1) -> Limits:
    """What each of `shares` errands that run at once may use of what is left."""
    return limits.model_copy(
        update={
            "minutes": None if limits.minutes is None else max(limits.minutes - spend.seconds / 60, 0.0),
            "usd": None if limits.usd is None else max(limits.usd - spend.usd, 0.0) / shares,
            "tokens": None if limits.tokens is None else max(limits.tokens - spend.tokens, 0) // shares,
        }
    )
