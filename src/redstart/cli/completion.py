"""What Tab offers."""

from __future__ import annotations


def complete_run_id(incomplete: str) -> list[tuple[str, str]]:
    """Ids of runs, newest first, each with what it was; nothing where the settings cannot be read."""
    from redstart.app.recent import recent_runs
    from redstart.core.errors import RedstartError

    try:
        return [(run.run_id, f"{run.mode} {run.repo}: {run.state}") for run in recent_runs(incomplete)]
    except RedstartError:
        return []
