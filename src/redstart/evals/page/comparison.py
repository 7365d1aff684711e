"""Render the comparison of two models as one self-contained HTML page."""

from __future__ import annotations

from html import escape

from redstart.app.page import escape_name, render_document
from redstart.core.frozen import format_count
from redstart.evals.comparison_text import format_extent, list_comparison_figures, list_notes
from redstart.evals.intervals import format_number
from redstart.evals.model_comparison import SIDES, BugOutcome, ModelComparison, PlayedBug
from redstart.evals.page import NOT_RUN, SIGNS, read_styles, render_cell, render_figures_table


def render_comparison(comparison: ModelComparison) -> str:
    """Render the page. It has no script, and every text of the repo or of a run is escaped."""
    models = "".join(
        f"<p>{side} is <b>{escape_name(figures.model)}</b></p>"
        for side, figures in zip(SIDES, (comparison.a, comparison.b), strict=True)
    )
    conclusions = "".join(f"<p>{escape(line)}</p>" for line in comparison.conclusions)
    notes = "".join(f'<p class="note">{escape(line)}</p>' for line in list_notes(comparison))
    figures = [figure for pair in list_comparison_figures(comparison) for figure in pair]
    title = f"Models on past bugs of {comparison.repo}"
    extent = f'<p class="note">{escape(format_extent(comparison))}</p>'
    body = [
        f"<header><h1>{escape_name(title)}</h1>{models}{extent}</header>",
        f"<section><h2>What it shows</h2>{conclusions}{notes}</section>",
        f"<section><h2>Figures</h2>{render_figures_table(figures)}</section>",
        f"<section><h2>Bugs</h2>{_render_bugs(comparison.bugs)}{_render_legend(comparison.bugs)}</section>",
    ]
    return render_document(title, body, styles=read_styles())


def _render_bugs(bugs: tuple[PlayedBug, ...]) -> str:
    lines = "".join(
        f'<tr><td>{_render_outcome(bug.a)}</td><td>{_render_outcome(bug.b)}</td><th scope="row">'
        f"{escape_name(bug.subject)}<small>{escape_name(bug.task)}</small></th></tr>"
        for bug in bugs
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in (*SIDES, "bug"))
    return f'<div class="wide"><table class="bugs"><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _render_outcome(outcome: BugOutcome | None) -> str:
    if outcome is None:
        return render_cell(NOT_RUN, NOT_RUN)
    title = f"{outcome.ended.value}: {SIGNS[outcome.ended].means}; {outcome.trouble}".removesuffix("; ")
    price = "price unknown" if outcome.unpriced else f"${format_number(outcome.usd)}"
    costs = f"{format_count(outcome.attempts, 'attempt')}, {price}, {format_number(outcome.minutes)} min"
    return f"{render_cell(outcome.ended.value, title)}<small>{costs}</small>"


def _render_legend(bugs: tuple[PlayedBug, ...]) -> str:
    ends = {outcome.ended for bug in bugs for outcome in (bug.a, bug.b) if outcome is not None}
    items = "".join(
        f"<li>{render_cell(place.value, '')} {place.value}: {sign.means}</li>"
        for place, sign in SIGNS.items()
        if place in ends
    )
    return f'<ul class="signs">{items}</ul>'
