"""Format the figures of an evaluation as lines of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.frozen import format_count
from redstart.evals.intervals import LEVEL, Comparison, Estimate
from redstart.evals.metrics import EvaluationFigures
from redstart.evals.outcome import EndPoint, EvaluationPlan, RunOutcome


class ReportFigure(NamedTuple):
    """One figure as text, for every output."""

    name: str
    value: str
    interval: str = ""
    """Empty if it has none."""
    estimate: Estimate | None = None
    """The estimate that it states, if it is one."""
    share: bool = False
    """Whether it lies between 0 and 1."""
    scale: float = 0.0
    """The end of the scale that it is drawn on, if it shares one with others."""

    @property
    def line(self) -> str:
        return f"{self.name:<34} {self.value} {self.interval}".rstrip()


def format_heading(plan: EvaluationPlan, figures: EvaluationFigures, planned_runs: int) -> tuple[str, str]:
    """Format what was evaluated, and how many runs the figures cover."""
    return (
        f"{plan.name}: {plan.source} with {plan.model}",
        f"{figures.runs} of {format_count(planned_runs, 'run')}, {format_count(figures.tasks, 'task')}; "
        f"{100 * LEVEL:.0f} % intervals",
    )


def list_figures(figures: EvaluationFigures) -> list[ReportFigure]:
    """List the figures, without those that have no data."""
    return [
        *_make_share_figures("solved (pass@1)", figures.pass_at_1),
        *(
            ReportFigure(f"solved in {k} runs (pass@{k})", f"{100 * share:.1f} %")
            for k, share in figures.pass_at_k.items()
            if k > 1
        ),
        *_make_share_figures("green runs that hidden tests confirm", figures.honest_green),
        *_make_share_figures("any candidate is right (coverage)", figures.coverage),
        *_make_share_figures("the chosen one is right (selection)", figures.selection),
        ReportFigure("dishonest attempts, all caught", str(figures.dishonest_caught)),
        *_make_number_figures("attempts", figures.attempts),
        *_make_number_figures("seconds", figures.seconds),
        *_make_number_figures("seconds to green", figures.seconds_to_green),
        *_make_number_figures("tokens", figures.tokens),
        *_make_number_figures("usd", figures.usd),
        *_make_share_figures("edits that applied", figures.apply_rate),
        *([ReportFigure("  how they were made to fit", _format_counts(figures.rungs))] if figures.rungs else []),
        *_make_share_figures("files to fix in the first context", figures.recall),
        *_make_share_figures("lines to fix in any context", figures.lines_shown),
        *_make_share_figures("repeated patches", figures.repeated),
        *_make_share_figures("repeated failing states", figures.revisited),
    ]


def list_footnotes(figures: EvaluationFigures) -> list[str]:
    """List the notes that are needed to read the figures correctly."""
    if not figures.unpriced:
        return []
    return [f"{format_count(figures.unpriced, 'model call')} of unknown price: not counted in usd"]


def report_lines(plan: EvaluationPlan, figures: EvaluationFigures, planned_runs: int) -> list[str]:
    """Format the whole report."""
    place_figure = ReportFigure("where runs ended", _format_counts(figures.places))
    return [
        *format_heading(plan, figures, planned_runs),
        *(message.line for message in [*list_figures(figures), place_figure]),
        *list_footnotes(figures),
    ]


def format_comparison(a: EvaluationPlan, b: EvaluationPlan, comparison: Comparison) -> list[str]:
    """Format the comparison of B with A."""
    lines = [
        f"A is {a.name} ({a.model}), B is {b.name} ({b.model})",
        f"{format_count(comparison.pairs, 'pair')} on {format_count(comparison.tasks, 'task')}: both solved "
        f"{comparison.both}, "
        f"A alone {comparison.only_a}, B alone {comparison.only_b}",
    ]
    if comparison.difference is not None:
        difference = comparison.difference
        lines.append(
            f"solved, B minus A: {100 * difference.value:+.1f} points [{100 * difference.low:+.1f}, "
            f"{100 * difference.high:+.1f}], "
            f"exact paired test p = {comparison.p:.3g}"
        )
    lines += [f"{name}, B minus A: {_format_signed(difference)}" for name, difference in comparison.costs.items()]
    return [*lines, comparison.words]


def format_row(row: RunOutcome, finished_runs: int, planned_runs: int) -> str:
    """Format the line that is printed when a run ends."""
    price = f", ${row.usd:.3f}" if row.usd else ""
    line = (
        f"[{finished_runs}/{planned_runs}] {row.key}: {row.place.value}, "
        f"{format_count(row.attempts, 'attempt')}, {row.seconds:.0f} s{price}"
    )
    return f"{line} ({row.trouble.splitlines()[0][:100]})" if row.trouble else line


def forecast_cost(plan: EvaluationPlan, rows: Sequence[RunOutcome], remaining: int) -> str:
    """Estimate the cost of the remaining runs from the finished ones, else from their limits."""
    valid_rows = [row for row in rows if row.place is not EndPoint.broken]
    if valid_rows:
        usd, seconds = (
            sum(getattr(item, name) for item in valid_rows) / len(valid_rows) * remaining for name in ("usd", "seconds")
        )
        return (
            f"{format_count(remaining, 'run')} left: about ${usd:.2f} and {seconds / 60:.0f} minutes, by "
            f"{len(valid_rows)} finished"
        )
    limits = [
        f"${plan.limits.usd * remaining:.2f}" if plan.limits.usd is not None else "",
        f"{plan.limits.tokens * remaining:,} tokens" if plan.limits.tokens is not None else "",
        f"{plan.limits.minutes * remaining:.0f} minutes" if plan.limits.minutes is not None else "",
    ]
    return f"{format_count(remaining, 'run')}: at most {', '.join(limit for limit in limits if limit)}"


def _make_share_figures(name: str, estimate: Estimate | None) -> list[ReportFigure]:
    if estimate is None:
        return []
    interval = f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
    return [ReportFigure(name, f"{100 * estimate.value:.1f} %", interval, estimate, share=True)]


def _make_number_figures(name: str, estimate: Estimate | None) -> list[ReportFigure]:
    if estimate is None:
        return []
    value, _, interval = estimate.words.partition(" ")
    return [ReportFigure(name, value, interval, estimate)]


def _format_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _format_signed(estimate: Estimate) -> str:
    return f"{estimate.value:+.3g} [{estimate.low:+.3g}, {estimate.high:+.3g}]"
