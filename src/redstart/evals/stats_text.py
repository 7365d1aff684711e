"""Format the statistics of past runs as lines of plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from redstart.app.proof.text import TextLine
from redstart.core.errors import ConfigError
from redstart.core.noun import many
from redstart.core.run import Spend
from redstart.core.visible import visible_line
from redstart.evals.intervals import LEVEL, Estimate, short
from redstart.evals.stats import MemoryUse, SpreadStats, Stats

HANG = 35
"""The column where figures begin, and where a wrapped line continues."""
NAME = HANG - 4
_AGO = re.compile(r"(\d{1,5})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def moment(text: str, now: datetime) -> datetime:
    """Parse `7d`, `12h` or `2w` before now, a date or a time, in the time zone of `now`.

    Raises `ConfigError` for any other text.
    """
    try:
        if ago := _AGO.fullmatch(text.strip()):
            return now - int(ago[1]) * _UNITS[ago[2]]
        given = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a time", remedy="give 12h, 7d, 2w or a date such as 2030-01-31") from error
    return given if given.tzinfo else given.replace(tzinfo=now.tzinfo)


def stats_lines(found: Stats, results: Mapping[str, str] | None = None) -> list[TextLine]:
    """Format the figures that have data. `results` gives the texts for results of runs."""
    if not found.runs and not found.parts:
        return [TextLine("no runs in this period")]
    parts = f" and {many(found.parts, 'child run')}" if found.parts else ""
    lines = [f"{many(found.runs, 'run')}{parts}; {100 * LEVEL:.0f} % intervals"]
    lines += [f"{f'  {mode}':<34} {_counts(outcomes, results)}" for mode, outcomes in found.outcomes.items()]
    lines += _share("verified, of runs that tried", found.verified)
    lines += _spread("attempts", found.attempts)
    lines += _spread("seconds of work to green", found.seconds_to_green)
    lines += [f"{'all models':<34} {_spent(found.spent)}"]
    for model, spent in found.by_model.items():
        lines += _of_model(visible_line(model), _spent(spent))
    lines += ["by step"] if found.by_step else []
    lines += [f"{f'  {step}':<34} {_of_step(spent)}" for step, spent in found.by_step.items()]
    for name, counts in (
        ("how attempts ended", found.attempts_ended),
        ("exceptions at the baseline", found.errors),
        ("unusable model answers", found.faults),
    ):
        lines += [f"{name:<34} {_counts(counts)}"] if counts else []
    reasons = [TextLine(f"{count:>6}  {visible_line(reason)}", hang=8) for reason, count in found.reasons.items()]
    rest = _memory(found.memory)
    if found.spent.unpriced:
        rest.append(f"{many(found.spent.unpriced, 'model call')} of unknown price: not counted in the cost")
    figures, more = ([TextLine(line, hang=HANG) for line in part] for part in (lines, rest))
    return [*figures, *([TextLine("why runs were not verified")] if reasons else []), *reasons, *more]


def _memory(found: MemoryUse) -> list[str]:
    lines = [
        f"{'saved for later runs':<34} {many(found.cards_left, 'fix card')}, {many(found.failures_left, 'failure')}"
    ]
    if not found.runs:
        return [*lines, f"{'memory was used':<34} in no run"]
    lines.append(f"{'memory was used':<34} in {many(found.runs, 'run')}; fix cards found by {_counts(found.sources)}")
    lines += _share("  verified with memory", found.verified_with)
    lines += _share("  verified without memory", found.verified_without)
    lines += [
        f"{f'  card {visible_line(item.card)}':<34} verified in {item.verified} of {many(item.runs, 'run')}"
        for item in found.often
    ]
    return lines


def _share(name: str, found: Estimate | None) -> list[str]:
    if found is None:
        return []
    interval = f"[{100 * found.low:.1f}, {100 * found.high:.1f}]"
    return [f"{name:<34} {100 * found.value:.1f} % {interval} of {found.count}"]


def _spread(name: str, found: SpreadStats | None) -> list[str]:
    if found is None:
        return []
    middle = f"median {short(found.median)}, mean {short(found.mean)}"
    return [f"{name:<34} {middle}, 90 % within {short(found.p90)}, at most {short(found.most)}"]


def _spent(found: Spend) -> str:
    price = f"${found.usd:.4f}" if found.unpriced < found.calls or not found.calls else "price unknown"
    return f"{many(found.calls, 'call')}, {many(found.tokens, 'token')}, {price}"


def _of_step(found: Spend) -> str:
    return f"{short(found.seconds)} s" + (f", {_spent(found)}" if found.calls else "")


def _of_model(name: str, figures: str) -> list[str]:
    """Format a model. A name too long for its column, such as a command, gets its own line, uncut."""
    return [f"{f'  {name}':<34} {figures}"] if len(name) <= NAME else [f"  {name}", f"{'':<34} {figures}"]


def _counts(counts: dict[str, int], words: Mapping[str, str] | None = None) -> str:
    words = words or {}
    return ", ".join(f"{visible_line(words.get(name, name))} {count}" for name, count in counts.items())
