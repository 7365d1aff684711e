"""`redstart stats`."""

from __future__ import annotations

from typing import Annotated

import typer

from redstart.cli.output import echo, echo_json


def stats(
    since: Annotated[
        str, typer.Option("--since", metavar="7d|DATE", help="Only runs started since 12h, 7d or 2w ago, or a date.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Summarize past runs: outcomes, attempts, time and cost.

    Example: redstart stats --since 7d
    """
    import asyncio
    import json as encoder
    import shutil
    import sys
    from datetime import datetime

    from redstart.app import settings as configuration
    from redstart.app.standing import row_status
    from redstart.app.wire import AppContext, open_house
    from redstart.cli.run_table import RESULTS
    from redstart.cli.wrap import wrap
    from redstart.evals.facts import facts_of
    from redstart.evals.stats import Stats, stats_of
    from redstart.evals.stats_text import moment, stats_lines

    start = moment(since, datetime.now().astimezone()) if since else None

    async def go(house: AppContext) -> Stats:
        now = house.adapters.world.now()
        return stats_of(
            [
                facts_of(past._replace(row=past.row._replace(status=row_status(past.row, now))))
                async for past in house.adapters.store.past(start)
            ]
        )

    with open_house(configuration.load()) as house:
        found = asyncio.run(go(house))
    if json:
        echo_json(encoder.dumps(found.model_dump(mode="json")))
        return
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None
    for line in stats_lines(found, {**RESULTS, "needs_input": "needs input"}):
        for part in wrap(line.text, width, hang=line.hang):
            echo(part)
