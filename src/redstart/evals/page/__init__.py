"""The report of an evaluation as one HTML page that needs nothing beside itself."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from redstart.evals.metrics import Figures
from redstart.evals.outcome import Outcome, Plan
from redstart.evals.page.parts import (
    CostPlot,
    cost_plots,
    every_run,
    figures_table,
    grid,
    grid_part,
    places_part,
    rounds,
)
from redstart.evals.report import footnotes, heading, said


def html_page(plan: Plan, rows: Sequence[Outcome], found: Figures, planned: int) -> str:
    """The page. Names of tasks and messages of runs are text in it, whatever they hold.

    Its policy lets nothing be loaded and runs these very scripts alone, so that even what slipped through would do
    nothing.
    """
    title, extent = heading(plan, found, planned)
    plots = cost_plots(rows)
    scripts = [_file("uplot", "uPlot.iife.min.js"), _file("page.js")]
    notes = "".join(f"<p class=note>{escape(one)}</p>" for one in footnotes(found))
    body = [
        f"<header><h1>{escape(plan.name)}</h1><p>{escape(title.removeprefix(f'{plan.name}: '))}</p>"
        f"<p class=note>{escape(extent)}</p></header>",
        f"<section><h2>Figures</h2>{figures_table(said(found))}{notes}</section>",
        f"<section><h2>Where runs ended</h2>{places_part(found)}</section>",
        _costs_part(plots),
        f'<section id="tasks"><h2>Tasks and runs</h2>{grid_part(grid(plan, rows), rounds(plan))}</section>',
        f"<section>{every_run(rows)}</section>",
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{_file('uplot', 'uPlot.min.css')}\n{_file('page.css')}</style></head><body><main>",
            *body,
            f'</main><script type="application/json" id="drawn">{json_in_script(_drawn(plots, found))}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def json_in_script(value: object) -> str:
    """JSON that may stand in a script element: nothing in it ends the element or opens a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _costs_part(plots: Sequence[CostPlot]) -> str:
    if not plots:
        return ""
    chosen = "tokens" if any(plot.name == "tokens" for plot in plots) else plots[0].name
    buttons = "".join(
        f'<button type="button" data-cost="{plot.name}" aria-pressed="{"true" if plot.name == chosen else "false"}">'
        f"{plot.name}</button>"
        for plot in plots
    )
    return (
        f'<section><h2>Cost against success</h2><div class="choice" role="group" aria-label="cost">{buttons}</div>'
        '<div class="plots"><figure><figcaption>Each task: its mean cost a run, and the share of its runs that solved '
        'it</figcaption><div id="points"></div><p id="near" class="note" aria-live="polite"></p></figure>'
        "<figure><figcaption>Solved by runs that cost at most so much; band: the interval of pass@1"
        '</figcaption><div id="curve"></div><p id="reached" class="note" aria-live="polite"></p></figure></div>'
        "<noscript><p>The two drawings need scripts; every number of theirs is in the list of runs below.</p>"
        "</noscript></section>"
    )


def _drawn(plots: Sequence[CostPlot], found: Figures) -> dict[str, object]:
    return {
        "costs": {plot.name: {"points": plot.points, "curve": plot.curve} for plot in plots},
        "solved": found.pass_at_1.model_dump() if found.pass_at_1 else None,
    }


def _policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; base-uri 'none'; form-action 'none'"


def _file(*names: str) -> str:
    return files("redstart.evals.page").joinpath(*names).read_text(encoding="utf-8")
