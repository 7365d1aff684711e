"""`redstart stats`."""

from __future__ import annotations

from typing import Annotated

import typer


def stats(
    since: Annotated[
        str, typer.Option("--since", metavar="7d|DATE", help="Only runs started since then: 12h, 7d, 2w or a date.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Summarize past runs: outcomes, attempts, time and cost.

    Example: redstart stats --since 7d
    """
    import asyncio
    import json as encoder
    from datetime import datetime

    from redstart.app import settings as configuration
    from redstart.app.wire import House, open_house
    from redstart.evals.facts import facts_of
    from redstart.evals.stats import Stats, stats_of
    from redstart.evals.stats_text import moment, stats_lines

    start = moment(since, datetime.now().astimezone()) if since else None

    async def go(house: House) -> Stats:
        return stats_of([facts_of(past) async for past in house.adapters.store.past(start)])

    with open_house(configuration.load()) as house:
        found = asyncio.run(go(house))
    for line in [encoder.dumps(found.model_dump(mode="json"))] if json else stats_lines(found):
        typer.echo(line)
