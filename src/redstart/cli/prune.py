"""`redstart runs prune`."""

from __future__ import annotations

from typing import Annotated

import typer


def prune(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, metavar="DAYS", help="Only runs that ended so long ago.")
    ] = 30.0,
    keep: Annotated[int, typer.Option("--keep", min=0, metavar="N", help="Keep the newest N in any case.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
) -> None:
    """Remove old runs that have ended, with their records and patches. What was learned from them stays."""
    import asyncio
    import time

    from redstart.app import settings as configuration
    from redstart.app.prune import prune as prune_runs

    settings = configuration.load()
    swept = asyncio.run(prune_runs(settings, days=older_than, keep=keep, dry=dry_run, now=time.time()))
    did = "would remove" if dry_run else "removed"
    typer.echo(
        f"{did} {len(swept.runs)} runs, {swept.patches} patches, {swept.blobs} blobs and {swept.folders} work folders: "
        f"{swept.size / 1e6:.1f} MB"
    )
