"""What Tab offers."""

from __future__ import annotations

import typer


def complete_run_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids of runs, newest first, each with what it was; nothing where the settings cannot be read."""
    from redstart.app.recent import recent_runs
    from redstart.core.errors import RedstartError

    is_demo = bool(ctx.find_root().params.get("demo_store"))
    try:
        return [(run.run_id, f"{run.mode} {run.repo}: {run.state}") for run in recent_runs(incomplete, demo=is_demo)]
    except RedstartError:
        return []
