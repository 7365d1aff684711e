"""Format the figures of an evaluation as lines of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.noun import many
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

    @property
    def line(self) -> str:
        return f"{self.name:<34} {self.value} {self.interval}".rstrip()


def heading(plan: EvaluationPlan, found: EvaluationFigures, planned: int) -> tuple[str, str]:
    """Format what was evaluated, and how many runs the figures cover."""
    return (
        f"{plan.name}: {plan.source} with {plan.model}",
        f"{found.runs} of {many(planned, 'run')}, {many(found.tasks, 'task')}; {100 * LEVEL:.0f} % intervals",
    )


def said(found: EvaluationFigures) -> list[ReportFigure]:
    """List the figures, without those that have no data."""
    return [
        *_shares("solved (pass@1)", found.pass_at_1),
        *(
            ReportFigure(f"solved in {k} runs (pass@{k})", f"{100 * share:.1f} %")
            for k, share in found.pass_at_k.items()
            if k > 1
        ),
        *_shares("greens that hidden tests confirm", found.honest_green),
        ReportFigure("dishonest attempts, all caught", str(found.dishonest_caught)),
        *_numbers("attempts", found.attempts),
        *_numbers("seconds", found.seconds),
        *_numbers("seconds to green", found.seconds_to_green),
        *_numbers("tokens", found.tokens),
        *_numbers("usd", found.usd),
        *_shares("edits that applied", found.apply_rate),
        *([ReportFigure("  of them, by adaptation", _counts(found.rungs))] if found.rungs else []),
        *_shares("true files in the first context", found.recall),
        *_shares("true lines in some context", found.lines_shown),
        *_shares("patches tried before", found.repeated),
        *_shares("failing states seen before", found.revisited),
    ]


def footnotes(found: EvaluationFigures) -> list[str]:
    """List the notes that are needed to read the figures correctly."""
    if not found.unpriced:
        return []
    return [f"{many(found.unpriced, 'model call')} of unknown price: not counted in usd"]


def report_lines(plan: EvaluationPlan, found: EvaluationFigures, planned: int) -> list[str]:
    """Format the whole report."""
    ended = ReportFigure("where runs ended", _counts(found.places))
    return [*heading(plan, found, planned), *(message.line for message in [*said(found), ended]), *footnotes(found)]


def comparison_lines(a: EvaluationPlan, b: EvaluationPlan, found: Comparison) -> list[str]:
    """Format the comparison of B with A."""
    lines = [
        f"A is {a.name} ({a.model}), B is {b.name} ({b.model})",
        f"{many(found.pairs, 'pair')} on {many(found.tasks, 'task')}: both solved {found.both}, "
        f"A alone {found.only_a}, B alone {found.only_b}",
    ]
    if found.difference is not None:
        gap = found.difference
        lines.append(
            f"solved, B minus A: {100 * gap.value:+.1f} points [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}], "
            f"exact paired test p = {found.p:.3g}"
        )
    lines += [f"{name}, B minus A: {_signed(gap)}" for name, gap in found.costs.items()]
    return [*lines, found.words]


def row_line(row: RunOutcome, done: int, planned: int) -> str:
    """Format the line that is printed when a run ends."""
    price = f", ${row.usd:.3f}" if row.usd else ""
    told = (
        f"[{done}/{planned}] {row.key}: {row.place.value}, {many(row.attempts, 'attempt')}, {row.seconds:.0f} s{price}"
    )
    return f"{told} ({row.trouble.splitlines()[0][:100]})" if row.trouble else told


def forecast(plan: EvaluationPlan, rows: Sequence[RunOutcome], left: int) -> str:
    """Estimate the cost of the remaining runs from the finished ones, else from their limits."""
    good = [row for row in rows if row.place is not EndPoint.broken]
    if good:
        usd, seconds = (sum(getattr(item, name) for item in good) / len(good) * left for name in ("usd", "seconds"))
        return f"{many(left, 'run')} left: about ${usd:.2f} and {seconds / 60:.0f} minutes, by {len(good)} finished"
    limits = [
        f"${plan.limits.usd * left:.2f}" if plan.limits.usd is not None else "",
        f"{plan.limits.tokens * left:,} tokens" if plan.limits.tokens is not None else "",
        f"{plan.limits.minutes * left:.0f} minutes" if plan.limits.minutes is not None else "",
    ]
    return f"{many(left, 'run')}: at most {', '.join(limit for limit in limits if limit)}"


def _shares(name: str, found: Estimate | None) -> list[ReportFigure]:
    if found is None:
        return []
    interval = f"[{100 * found.low:.1f}, {100 * found.high:.1f}]"
    return [ReportFigure(name, f"{100 * found.value:.1f} %", interval, found, share=True)]


def _numbers(name: str, found: Estimate | None) -> list[ReportFigure]:
    if found is None:
        return []
    value, _, interval = found.words.partition(" ")
    return [ReportFigure(name, value, interval, found)]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _signed(found: Estimate) -> str:
    return f"{found.value:+.3g} [{found.low:+.3g}, {found.high:+.3g}]"
