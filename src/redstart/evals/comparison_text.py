"""Format a comparison of two models as lines of plain text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from redstart.core.frozen import format_count
from redstart.core.run import Limits, Spend
from redstart.evals.intervals import Estimate
from redstart.evals.model_comparison import (
    FEWEST,
    SIDES,
    BugOutcome,
    ComparisonFrame,
    ModelComparison,
    ModelFigures,
)
from redstart.evals.page import NOT_RUN, SIGNS, get_scale_end
from redstart.evals.report import ReportFigure

_UNKNOWN = "price unknown"
_NONE = "none played"
_COLUMN = 28


def format_offer(frame: ComparisonFrame, tasks: int, remaining: int, spent: Spend) -> list[str]:
    """Say what will be played and what it costs at most, before any model is asked."""
    limits, run_limits = frame.limits, frame.run_limits
    usd = min(max(limits.usd - spent.usd, 0.0), remaining * (run_limits.usd or 0.0))
    minutes = min(max(limits.minutes - spent.seconds / 60, 0.0), remaining * (run_limits.minutes or 0.0))
    lines = [
        *_list_models(frame.models),
        f"{format_count(tasks, 'past bug')} of {frame.repo}, {format_count(remaining, 'run')} to play: "
        f"at most ${usd:.2f} and {minutes:.0f} minutes",
        f"each run: at most {_format_run_limits(run_limits)}",
    ]
    if frame.unpriced:
        tokens = f"{remaining * run_limits.tokens:,}" if run_limits.tokens is not None else "any number of"
        lines.append(
            f"note: the price of {' and '.join(frame.unpriced)} is unknown: the dollars of its calls are not counted; "
            f"all runs together use at most {tokens} tokens"
        )
    if tasks < FEWEST:
        lines.append(f"note: too few usable bugs: with fewer than {FEWEST}, even all against none may be chance")
    return lines


def format_model_comparison(comparison: ModelComparison) -> list[str]:
    """Format the whole result. Only sentences are longer than 80 characters."""
    return [
        *_list_models((comparison.a.model, comparison.b.model)),
        format_extent(comparison),
        "",
        f"{'':<17}{'A':<{_COLUMN}}B",
        *(
            f"{a.name.partition(',')[0]:<17}{f'{a.value} {a.interval}':<{_COLUMN}}{b.value} {b.interval}".rstrip()
            for a, b in list_comparison_figures(comparison)
        ),
        "",
        *comparison.conclusions,
        *list_notes(comparison),
        "",
        *_list_bugs(comparison),
    ]


def format_extent(comparison: ModelComparison) -> str:
    """Say how many bugs the figures cover, and what was spent."""
    return (
        f"{comparison.compared} of {format_count(len(comparison.bugs), 'past bug')} of {comparison.repo} played with "
        f"both; {100 * comparison.level:.0f} % intervals; spent ${comparison.spent_usd:.2f} and "
        f"{format_count(round(comparison.spent_minutes), 'minute')} in all"
    )


def list_comparison_figures(comparison: ModelComparison) -> list[tuple[ReportFigure, ReportFigure]]:
    """List each figure of A and of B. Both are drawn on the same scale."""
    a, b = comparison.a, comparison.b
    return [
        (_make_share_figure("A", a), _make_share_figure("B", b)),
        _make_number_pair("dollars per bug", a.usd, b.usd, _UNKNOWN if comparison.compared else _NONE),
        _make_number_pair("minutes per bug", a.minutes, b.minutes, _NONE),
    ]


def _make_share_figure(side: str, figures: ModelFigures) -> ReportFigure:
    share, name = figures.solved_share, f"solved, {side}"
    if share is None:
        return ReportFigure(name, _NONE)
    interval = f"[{100 * share.low:.0f}, {100 * share.high:.0f} %]"
    return ReportFigure(name, f"{figures.solved} of {share.count}", interval, share, share=True)


def _make_number_pair(
    name: str, a: Estimate | None, b: Estimate | None, missing: str
) -> tuple[ReportFigure, ReportFigure]:
    scale = max((get_scale_end(estimate) for estimate in (a, b) if estimate is not None), default=0.0)
    return (
        _make_number_figure(f"{name}, A", a, missing, scale),
        _make_number_figure(f"{name}, B", b, missing, scale),
    )


def _make_number_figure(name: str, estimate: Estimate | None, missing: str, scale: float) -> ReportFigure:
    if estimate is None:
        return ReportFigure(name, missing)
    value, _, interval = estimate.words.partition(" ")
    return ReportFigure(name, value, interval, estimate, scale=scale)


def list_notes(comparison: ModelComparison) -> list[str]:
    """List what the figures leave out, and why."""
    notes: list[str] = []
    for limit, count in sorted(Counter(comparison.unplayed.values()).items()):
        amount = f"${comparison.limits.usd:.2f}" if limit == "usd" else f"{comparison.limits.minutes:.0f} minutes"
        notes.append(
            f"not played: {format_count(count, 'bug')}, because the rest of {amount} does not cover the limits of a "
            f"bug's runs; raise --max-{limit} to go on"
        )
    if comparison.stopped:
        notes.append(f"stopped, because runs broke one after another: {comparison.stopped.splitlines()[0][:200]}")
    elif comparison.broken:
        notes.append(
            f"{format_count(len(comparison.broken), 'run')} broke and will be tried again by the same command: "
            f"{comparison.broken[0].splitlines()[0][:200]}"
        )
    for side, figures in zip(SIDES, (comparison.a, comparison.b), strict=True):
        if figures.unpriced:
            notes.append(f"the price of {side} is unknown: no limit in dollars holds for it, only the limit in tokens")
    return notes


def _list_models(models: Sequence[str]) -> list[str]:
    return [f"{side} is {model}" for side, model in zip(SIDES, models, strict=True)]


def _list_bugs(comparison: ModelComparison) -> list[str]:
    lines = ["A B  bug"]
    lines += [
        f"{_get_letter(bug.a)} {_get_letter(bug.b)}  {_name_bug(bug.task)}  {bug.subject}" for bug in comparison.bugs
    ]
    ends = {outcome.ended for bug in comparison.bugs for outcome in (bug.a, bug.b) if outcome is not None}
    legend = [f"{sign.letter} {place.value}" for place, sign in SIGNS.items() if place in ends]
    if any(outcome is None for bug in comparison.bugs for outcome in (bug.a, bug.b)):
        legend.append(f"· {NOT_RUN}")
    return [*lines, ", ".join(legend)]


def _get_letter(outcome: BugOutcome | None) -> str:
    return "·" if outcome is None else SIGNS[outcome.ended].letter


def _name_bug(task: str) -> str:
    """Return the commit of a mined task."""
    return task.rpartition("/")[2]


def _format_run_limits(limits: Limits) -> str:
    parts = [
        format_count(limits.attempts, "attempt"),
        f"${limits.usd:.2f}" if limits.usd is not None else "",
        f"{limits.minutes:.0f} minutes" if limits.minutes is not None else "",
        f"{limits.tokens:,} tokens" if limits.tokens is not None else "",
    ]
    return ", ".join(filter(None, parts))
