"""`redstart stats`."""

from __future__ import annotations

from typing import Annotated

import typer

from redstart.cli.output import echo, echo_json


def stats(
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="7d|DATE", help="Only runs started in this period (12h, 7d, 2w) or since this date."
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Summarize past runs: outcomes, attempts, time and cost."""
    import asyncio
    import json as encoder
    import shutil
    import sys
    from datetime import datetime

    from redstart.app import settings as configuration
    from redstart.app.memory import TenantMemory, open_memory
    from redstart.app.run_status import resolve_row_status
    from redstart.app.wire import AppContext, open_app
    from redstart.cli.run_table import RESULTS
    from redstart.cli.text_wrap import wrap
    from redstart.evals.run_facts import collect_facts
    from redstart.evals.stats import Stats, compute_stats
    from redstart.evals.stats_text import format_stats, parse_moment

    start = parse_moment(since, datetime.now().astimezone()) if since else None

    async def go(app: AppContext, memory: TenantMemory) -> Stats:
        now = app.adapters.world.now()
        facts = [
            collect_facts(past_run._replace(row=past_run.row._replace(status=resolve_row_status(past_run.row, now))))
            async for past_run in app.adapters.store.iter_past_runs(start)
        ]
        return compute_stats(facts, await memory.cards.list_families())

    settings = configuration.load()
    with open_app(settings) as app, open_memory(settings) as memory:
        run_stats = asyncio.run(go(app, memory))
    if json:
        echo_json(encoder.dumps(run_stats.model_dump(mode="json")))
        return
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None
    for line in format_stats(run_stats, {**RESULTS, "needs_input": "needs input"}):
        for part in wrap(line.text, width, hang=line.hang):
            echo(part)
