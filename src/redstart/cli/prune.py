"""`redstart runs prune`."""

from __future__ import annotations

from typing import Annotated

import typer

from redstart.cli.output import echo


def prune(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, metavar="DAYS", help="Remove only runs that are older than this.")
    ] = 30.0,
    keep: Annotated[int, typer.Option("--keep", min=0, metavar="N", help="Keep the newest N of them.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be removed, and stop.")] = False,
) -> None:
    """Remove old runs that finished, failed, were cancelled or are paused, with their records and patches.

    Runs that are queued, running or need input stay. What was learned from removed runs stays too.
    """
    import asyncio
    import time

    from redstart.app import settings as configuration
    from redstart.app.prune import prune as prune_runs
    from redstart.core.noun import many

    settings = configuration.load()
    swept = asyncio.run(prune_runs(settings, days=older_than, keep=keep, dry=dry_run, now=time.time()))
    did = "would remove" if dry_run else "removed"
    echo(
        f"{did} {many(len(swept.runs), 'run')}, {swept.patches} patch files, {many(swept.blobs, 'blob')} and "
        f"{many(swept.folders, 'work folder')}: {swept.size / 1e6:.1f} MB"
    )
