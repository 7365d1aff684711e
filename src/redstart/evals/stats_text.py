"""Format the statistics of past runs as lines of plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from redstart.app.proof.text import TextLine
from redstart.core.errors import ConfigError
from redstart.core.frozen import format_count
from redstart.core.run import Spend
from redstart.core.safe_text import escape_line
from redstart.evals.intervals import LEVEL, Estimate, format_number
from redstart.evals.stats import MemoryUse, SpreadStats, Stats

HANG = 35
"""The column where figures begin, and where a wrapped line continues."""
NAME = HANG - 4
_AGO = re.compile(r"(\d{1,5})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_moment(text: str, now: datetime) -> datetime:
    """Parse `7d`, `12h` or `2w` before now, a date or a time, in the time zone of `now`.

    Raises `ConfigError` for any other text.
    """
    try:
        if ago := _AGO.fullmatch(text.strip()):
            return now - int(ago[1]) * _UNITS[ago[2]]
        parsed = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise ConfigError(f"{text!r} is not a time", remedy="give 12h, 7d, 2w or a date such as 2030-01-31") from error
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=now.tzinfo)


def format_stats(stats: Stats, results: Mapping[str, str] | None = None) -> list[TextLine]:
    """Format the figures that have data. `results` gives the texts for results of runs."""
    if not stats.runs and not stats.parts:
        return [TextLine("no run was started in this period")]
    parts = f" and {format_count(stats.parts, 'child run')}" if stats.parts else ""
    lines = [f"{format_count(stats.runs, 'run')}{parts}; {100 * LEVEL:.0f} % intervals"]
    lines += [f"{f'  {mode}':<34} {_format_counts(outcomes, results)}" for mode, outcomes in stats.outcomes.items()]
    lines += _share("verified, of runs that made an attempt", stats.verified)
    lines += _format_spread("attempts", stats.attempts)
    lines += _format_spread("seconds of work to green", stats.seconds_to_green)
    lines += [f"{'hand-overs between workers':<34} {stats.spent.handovers}"] if stats.spent.handovers else []
    lines += [f"{'all models':<34} {_format_spend(stats.spent)}"]
    for model, spend in stats.by_model.items():
        lines += _format_model(escape_line(model), _format_spend(spend))
    lines += ["by step"] if stats.by_step else []
    lines += [f"{f'  {step}':<34} {_format_step(spend)}" for step, spend in stats.by_step.items()]
    for name, counts in (
        ("how attempts ended", stats.attempts_ended),
        ("exceptions at the baseline", stats.errors),
        ("unusable model answers", stats.faults),
    ):
        lines += [f"{name:<34} {_format_counts(counts)}"] if counts else []
    reasons = [TextLine(f"{count:>6}  {escape_line(reason)}", hang=8) for reason, count in stats.reasons.items()]
    memory_lines = _format_memory(stats.memory)
    if stats.spent.unpriced:
        memory_lines.append(
            f"{format_count(stats.spent.unpriced, 'model call')} of unknown price: not counted in the cost"
        )
    figures, notes = ([TextLine(line, hang=HANG) for line in part] for part in (lines, memory_lines))
    return [*figures, *([TextLine("why runs were not verified")] if reasons else []), *reasons, *notes]


def _format_memory(memory: MemoryUse) -> list[str]:
    lines = [
        f"{'saved for later runs':<34} {format_count(memory.cards_left, 'fix card')}, "
        f"{format_count(memory.failures_left, 'failure')}"
    ]
    if not memory.runs:
        return [*lines, f"{'memory was used':<34} by no run"]
    lines.append(
        f"{'memory was used':<34} by {format_count(memory.runs, 'run')}; fix cards found by "
        f"{_format_counts(memory.sources)}"
    )
    lines += _share("  shown cards for the bug's family", memory.precision)
    lines += _share("  verified with memory", memory.verified_with)
    lines += _share("  verified without memory", memory.verified_without)
    lines += [
        f"{f'  card {escape_line(item.card)}':<34} verified in {item.verified} of {format_count(item.runs, 'run')}"
        for item in memory.often
    ]
    return lines


def _share(name: str, estimate: Estimate | None) -> list[str]:
    if estimate is None:
        return []
    interval = f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
    return [f"{name:<34} {100 * estimate.value:.1f} % {interval} of {estimate.count}"]


def _format_spread(name: str, spread: SpreadStats | None) -> list[str]:
    if spread is None:
        return []
    middle = f"median {format_number(spread.median)}, mean {format_number(spread.mean)}"
    return [f"{name:<34} {middle}, 90 % within {format_number(spread.p90)}, at most {format_number(spread.most)}"]


def _format_spend(spend: Spend) -> str:
    price = f"${spend.usd:.4f}" if spend.unpriced < spend.calls or not spend.calls else "price unknown"
    return f"{format_count(spend.calls, 'call')}, {format_count(spend.tokens, 'token')}, {price}"


def _format_step(spend: Spend) -> str:
    return f"{format_number(spend.seconds)} s" + (f", {_format_spend(spend)}" if spend.calls else "")


def _format_model(name: str, figures: str) -> list[str]:
    """Format a model. A name too long for its column, such as a command, gets its own line, uncut."""
    return [f"{f'  {name}':<34} {figures}"] if len(name) <= NAME else [f"  {name}", f"{'':<34} {figures}"]


def _format_counts(counts: dict[str, int], texts: Mapping[str, str] | None = None) -> str:
    texts = texts or {}
    return ", ".join(f"{escape_line(texts.get(name, name))} {count}" for name, count in counts.items())
