"""The end of a run that brings nothing: a warning first, then the end, for the run as a whole and for each model."""

from __future__ import annotations

from typing import NamedTuple

from redstart.core.course import Stall
from redstart.core.noun import many
from redstart.core.run import RunState
from redstart.toolkit.learning.stuck import looks, start


class Broken(NamedTuple):
    """Too many attempts brought nothing."""

    words: str
    ends: bool
    """Whether it is more than a warning."""
    model: str = ""
    """Whose attempts they were; empty for those of the run."""


def fruitless(run: RunState, model: str = "") -> int:
    """How many attempts in a row, up to the one at hand, left no fewer tests red than the best before them.

    Only those of one model where it is named. Probes and attempts that wait for a person are not counted.
    """
    best, count = start(run), 0
    for one in looks(run):
        wrong = one.seen.wrong
        if wrong is not None and (best is None or wrong < best):
            best, count = wrong, 0
        elif not model or one.seen.model == model:
            count += 1
    return count


def broken(run: RunState) -> Broken | None:
    """What the thresholds of the run, and of the model that wrote the attempt at hand, have to say."""
    limits = run.spec.limits
    writer = run.now.patch.model if run.now.patch else ""
    own = _held(fruitless(run), Stall(warning=limits.stall_warning, end=limits.stall))
    stall = run.spec.asks.stalls.get(writer)
    of_model = _held(fruitless(run, writer), stall, writer) if writer and stall else None
    found = [one for one in (own, of_model) if one is not None]
    return max(found, key=lambda one: one.ends, default=None)


def _held(count: int, stall: Stall, model: str = "") -> Broken | None:
    who = f" of {model}" if model else ""
    if stall.end is not None and count >= stall.end:
        return Broken(f"{many(count, 'attempt')}{who} in a row brought nothing", ends=True, model=model)
    if stall.warning is None or count < stall.warning:
        return None
    then = ""
    if stall.end is not None:
        left = stall.end - count
        then = f"; {many(left, 'more such attempt')}, and {'another model writes, or ' if model else ''}the run ends"
    return Broken(f"{many(count, 'attempt')}{who} in a row brought nothing{then}", ends=False, model=model)
