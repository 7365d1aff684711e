"""Render the report of an evaluation as one self-contained HTML page."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from html import escape
from statistics import fmean
from typing import NamedTuple

from redstart.app.page import MAX_NAME_LENGTH, escape_name, read_page_file, render_document
from redstart.core.frozen import format_count
from redstart.evals.intervals import Estimate, format_number
from redstart.evals.metrics import COSTS, EvaluationFigures
from redstart.evals.outcome import EndPoint, EvaluationPlan, RunKey, RunOutcome
from redstart.evals.report import ReportFigure, format_heading, list_figures, list_footnotes


class TaskPoint(NamedTuple):
    """A task: the mean cost of its runs, and the share of them that solved it."""

    cost: float
    solve_rate: float
    task: str


class CostPoint(NamedTuple):
    """The share of tasks that runs up to this cost solve."""

    cost: float
    solve_rate: float


class CostPlot(NamedTuple):
    name: str
    points: list[TaskPoint]
    """Sorted by cost. Their means are the figures of this cost and of pass@1."""
    curve: list[CostPoint]
    """Rises with the cost; its last share is pass@1."""


class TaskRow(NamedTuple):
    """A task's line in the grid: its runs in the order of the plan, None for a missing run."""

    task: str
    cells: list[RunOutcome | None]

    @property
    def solved(self) -> int:
        return sum(cell is not None and cell.solved for cell in self.cells)


def cost_plots(rows: Sequence[RunOutcome]) -> list[CostPlot]:
    """Make a plot for each kind of cost that is not always zero, without broken runs, as in the figures."""
    by_task: dict[str, list[RunOutcome]] = defaultdict(list)
    for row in rows:
        if row.place is not EndPoint.broken:
            by_task[row.key.task].append(row)
    used_costs = {name: count for name, count in COSTS.items() if any(count(row) for row in rows)}
    return [_build_plot(name, count, by_task) for name, count in used_costs.items()] if by_task else []


def _build_plot(name: str, count: Callable[[RunOutcome], float], by_task: dict[str, list[RunOutcome]]) -> CostPlot:
    points = [
        TaskPoint(fmean(map(count, group)), fmean(float(row.solved) for row in group), task)
        for task, group in by_task.items()
    ]
    # A task counts once, however many runs it has, so that the curve ends at pass@1.
    weighed = sorted(
        (count(row), row.solved / (len(group) * len(by_task))) for group in by_task.values() for row in group
    )
    curve = [CostPoint(0.0, 0.0)]
    for cost, weight in weighed:
        total = curve[-1].solve_rate + weight
        if curve[-1].cost == cost:
            curve[-1] = CostPoint(cost, total)
        else:
            curve.append(CostPoint(cost, total))
    return CostPlot(name, sorted(points), curve)


def build_grid(plan: EvaluationPlan, rows: Sequence[RunOutcome]) -> list[TaskRow]:
    """Return every task that has a row, those with the fewest solved runs first."""
    rows_by_key = {row.key: row for row in rows}
    tasks = sorted({row.key.task for row in rows})
    task_rows = [TaskRow(task, [rows_by_key.get(key) for key in plan.list_run_keys([task])]) for task in tasks]
    return sorted(task_rows, key=lambda item: (item.solved, item.task))


def list_columns(plan: EvaluationPlan) -> list[RunKey]:
    """List the columns of the grid."""
    return plan.list_run_keys([""])


NOT_RUN = "not run"
_MAX_PROBLEM_LENGTH = 600


class EndPointSign(NamedTuple):
    """How to show where a run ended: a letter, so that color is not the only sign, and its meaning."""

    letter: str
    means: str


SIGNS: dict[EndPoint, EndPointSign] = {
    EndPoint.solved: EndPointSign("S", "the hidden tests pass and nothing got worse"),
    EndPoint.false_green: EndPointSign("F", "the run reported green, but the hidden tests fail"),
    EndPoint.not_reproduced: EndPointSign("R", "no failing test was seen, or the environment failed"),
    EndPoint.not_localised: EndPointSign("L", "the model never saw the lines of the reference fix"),
    EndPoint.no_edit: EndPointSign("N", "the model gave no usable edit"),
    EndPoint.edit_rejected: EndPointSign("E", "the edit did not apply, or a check rejected it"),
    EndPoint.refused: EndPointSign("P", "by policy, or because a person would have to decide"),
    EndPoint.still_red: EndPointSign("D", "the target tests still fail"),
    EndPoint.newly_red: EndPointSign("W", "other tests fail now"),
    EndPoint.budget: EndPointSign("B", "a limit on attempts, time, tokens or money was reached"),
    EndPoint.broken: EndPointSign("X", "the machinery failed; this says nothing about the agent"),
}
"""Signs in the order in which they are listed."""


def render_figures_table(figures: Sequence[ReportFigure]) -> str:
    """Render each figure with its interval, as text and as a drawing."""
    return (
        '<div class="wide"><table class="figures"><thead><tr><th scope="col">figure</th><th scope="col">value</th>'
        '<th scope="col">interval</th><th scope="col" class="drawn">a share from 0 to 100 %, anything else from 0</th>'
        f"</tr></thead><tbody>{''.join(map(_render_figure, figures))}</tbody></table></div>"
    )


def _render_figure(figure: ReportFigure) -> str:
    name = f'<th scope="row">{escape(figure.name.strip())}</th>'
    if figure.estimate is None and not figure.value[0].isdigit():
        return f'<tr>{name}<td class="alone" colspan="3">{escape(figure.value)}</td></tr>'
    return (
        f'<tr>{name}<td class="value">{escape(figure.value)}</td><td class="interval">{escape(figure.interval)}</td>'
        f'<td class="drawn">{_render_interval(figure)}</td></tr>'
    )


def _render_interval(figure: ReportFigure) -> str:
    """Render a dot at the value and a bar over the interval: on 0 to 100 % for a share, else to a bit past its end."""
    estimate = figure.estimate
    if estimate is None:
        return ""
    end = 1.0 if figure.share else figure.scale or get_scale_end(estimate)
    low, high, value = (
        100 * min(max(number / end, 0.0), 1.0) for number in (estimate.low, estimate.high, estimate.value)
    )
    scale = "0 to 100 %" if figure.share else f"0 to {format_number(end)}"
    label = f"{figure.value} {figure.interval}, on {scale}"
    return (
        f'<span class="track" role="img" aria-label="{escape(label)}" title="{escape(label)}">'
        f'<i class="bar" style="left:{low:.2f}%;width:{high - low:.2f}%"></i>'
        f'<i class="dot" style="left:{value:.2f}%"></i></span>'
    )


def get_scale_end(estimate: Estimate) -> float:
    """Return the end of a scale on which a number is drawn: a bit past its interval."""
    return 1.25 * max(estimate.high, estimate.value) or 1.0


def render_places(figures: EvaluationFigures) -> str:
    """Render the number of runs by where they ended, each with a bar."""
    total = max(figures.runs, 1)
    lines = "".join(
        f"<tr><td>{render_cell(place.value, '')}</td><th "
        f'scope="row">{place.value}<small>{escape(sign.means)}</small></th>'
        f'<td class="value">{count}</td><td class="drawn"><span class="track" aria-hidden="true">'
        f'<i class="bar {_get_style_class(place.value)}" '
        f'style="left:0;width:{100 * count / total:.2f}%"></i></span></td>'
        f'<td class="value">{100 * count / total:.1f} %</td></tr>'
        for place, sign in SIGNS.items()
        if (count := figures.places.get(place.value, 0))
    )
    return f'<div class="wide"><table class="places"><tbody>{lines}</tbody></table></div>'


def render_grid(rows: Sequence[TaskRow], columns: Sequence[RunKey]) -> str:
    """Render tasks by runs, each a lettered cell whose title states the cause. Legend buttons highlight one kind."""
    places = {cell.place for row in rows for cell in row.cells if cell is not None}
    missing = any(cell is None for row in rows for cell in row.cells)
    names = [place.value for place in SIGNS if place in places] + [NOT_RUN] * missing
    legend = "".join(
        f'<button type="button" data-pick="{_get_style_class(name)}" '
        f'aria-pressed="false">{render_cell(name, "")} {name}</button>'
        for name in names
    )
    lines = "".join(
        f'<li><span class="task" title="{escape_name(row.task)}">{escape_name(row.task)}</span><span class="cells">'
        + "".join(
            render_cell(cell.place.value if cell else NOT_RUN, _format_title(row.task, key, cell))
            for key, cell in zip(columns, row.cells, strict=True)
        )
        + "</span></li>"
        for row in rows
    )
    order = ", ".join(f"seed {key.seed} run {key.run}" for key in columns[:6]) + (" …" if len(columns) > 6 else "")
    return (
        f'<div class="legend" role="group" aria-label="highlight">{legend}</div>'
        f'<p class="note">Fewest solved first; cells from the left: {order}. Point at a cell, or tap it, for the cause.'
        '</p><p id="told" class="told" aria-live="polite"></p>'
        f'<ol class="grid">{lines}</ol>'
    )


def render_runs_table(rows: Sequence[RunOutcome]) -> str:
    """Render all runs as a collapsed table."""
    lines = "".join(
        f"<tr><td>{escape_name(row.key.task)}</td><td>{row.key.seed}</td><td>{row.key.run}</td><td>{row.place.value}</td>"
        f"<td>{escape_name(row.result)}</td><td>{row.attempts}</td><td>{format_number(row.seconds)}</td><td>{row.tokens:,}</td>"
        f"<td>{row.usd:.4f}</td><td>{escape(row.trouble[:_MAX_PROBLEM_LENGTH])}</td></tr>"
        for row in rows
    )
    names = ("task", "seed", "run", "ended", "reported", "attempts", "seconds", "tokens", "usd", "trouble")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return (
        f'<details><summary>Every run ({len(rows)})</summary><div class="wide"><table class="runs"><thead><tr>{head}'
        f"</tr></thead><tbody>{lines}</tbody></table></div></details>"
    )


def _format_title(task: str, key: RunKey, cell: RunOutcome | None) -> str:
    name = f"{task[:MAX_NAME_LENGTH]}, seed {key.seed} run {key.run}"
    if cell is None:
        return f"{name}: {NOT_RUN}"
    outcome = f"{name}: {cell.place.value} ({SIGNS[cell.place].means})"
    price = f", ${cell.usd:.4f}" if cell.usd else ""
    summary = (
        f"{outcome}; {format_count(cell.attempts, 'attempt')}, {format_number(cell.seconds)} s, "
        f"{cell.tokens:,} tokens{price}"
    )
    result = f"; the run reported: {cell.result}" if cell.result else ""
    return f"{summary}{result}; {cell.trouble[:_MAX_PROBLEM_LENGTH]}" if cell.trouble else summary + result


def render_cell(name: str, title: str) -> str:
    """Render the letter of where a run ended; `title` says more and may be empty."""
    letter = "·" if name == NOT_RUN else SIGNS[EndPoint(name)].letter
    attribute = f' title="{escape(title)}"' if title else ' aria-hidden="true"'
    return f'<b class="cell {_get_style_class(name)}"{attribute}>{letter}</b>'


def _get_style_class(name: str) -> str:
    return "p-" + name.replace(" ", "-")


def render_html_page(
    plan: EvaluationPlan, rows: Sequence[RunOutcome], figures: EvaluationFigures, planned_runs: int
) -> str:
    """Render the page. Task names and messages of runs are escaped.

    Its content security policy loads nothing and runs only these scripts, so that unescaped code would not run either.
    """
    title, extent = format_heading(plan, figures, planned_runs)
    plots = cost_plots(rows)
    scripts = [_read_file("uplot", "uPlot.iife.min.js"), _read_file("page.js")]
    notes = "".join(f"<p class=note>{escape(footnote)}</p>" for footnote in list_footnotes(figures))
    body = [
        f"<header><h1>{escape(plan.name)}</h1><p>{escape(title.removeprefix(f'{plan.name}: '))}</p>"
        f"<p class=note>{escape(extent)}</p></header>",
        f"<section><h2>Figures</h2>{render_figures_table(list_figures(figures))}{notes}</section>",
        f"<section><h2>Where runs ended</h2>{render_places(figures)}</section>",
        _render_costs(plots),
        f'<section id="tasks"><h2>Tasks and '
        f"runs</h2>{render_grid(build_grid(plan, rows), list_columns(plan))}</section>",
        f"<section>{render_runs_table(rows)}</section>",
    ]
    data = encode_script_json(_collect_plot_data(plots, figures))
    body.append(f'<script type="application/json" id="drawn">{data}</script>')
    return render_document(title, body, scripts, styles=f"{_read_file('uplot', 'uPlot.min.css')}\n{read_styles()}")


def encode_script_json(value: object) -> str:
    """Encode JSON for a script element: nothing in it ends the element or opens a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _render_costs(plots: Sequence[CostPlot]) -> str:
    if not plots:
        return ""
    selected = "tokens" if any(plot.name == "tokens" for plot in plots) else plots[0].name
    buttons = "".join(
        f'<button type="button" data-cost="{plot.name}" aria-pressed="{"true" if plot.name == selected else "false"}">'
        f"{plot.name}</button>"
        for plot in plots
    )
    return (
        f'<section><h2>Cost against success</h2><div class="choice" role="group" aria-label="cost">{buttons}</div>'
        '<div class="plots"><figure><figcaption>Each task: its mean cost per run, and the share of its solved runs'
        '</figcaption><div id="points"></div><p id="near" class="note" aria-live="polite"></p></figure>'
        "<figure><figcaption>Share solved by runs up to this cost; band: the interval of pass@1"
        '</figcaption><div id="curve"></div><p id="reached" class="note" aria-live="polite"></p></figure></div>'
        "<noscript><p>The two plots need JavaScript; the list of runs has all the numbers.</p>"
        "</noscript></section>"
    )


def _collect_plot_data(plots: Sequence[CostPlot], figures: EvaluationFigures) -> dict[str, object]:
    return {
        "costs": {plot.name: {"points": plot.points, "curve": plot.curve} for plot in plots},
        "solved": figures.pass_at_1.model_dump() if figures.pass_at_1 else None,
    }


def read_styles() -> str:
    """Read the styles of the pages of evaluations."""
    return _read_file("page.css")


def _read_file(*names: str) -> str:
    return read_page_file(__name__, *names)
