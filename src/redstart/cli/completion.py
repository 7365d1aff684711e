"""What Tab offers."""

from __future__ import annotations

import typer


def complete_run_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids of runs, newest first, each with what it was; nothing where the settings cannot be read."""
    return _complete(ctx, incomplete, unfinished=False)


def complete_unfinished_run_id(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The same of runs that can still be paused or cancelled."""
    return _complete(ctx, incomplete, unfinished=True)


def _complete(ctx: typer.Context, incomplete: str, *, unfinished: bool) -> list[tuple[str, str]]:
    from redstart.app.recent import recent_runs
    from redstart.core.errors import RedstartError
    from redstart.core.visible import visible_line

    is_demo = bool(ctx.find_root().params.get("demo_store"))
    try:
        runs = recent_runs(incomplete, demo=is_demo, unfinished=unfinished)
        return [(run.run_id, visible_line(f"{run.mode} {run.repo}: {run.state}")) for run in runs]
    except RedstartError:
        return []
