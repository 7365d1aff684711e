"""List the runs that match the beginning of an ID, quickly."""

from __future__ import annotations

from redstart.app import settings as configuration
from redstart.app.settings.store import DATABASE, DEFAULT_TENANT, DEMO
from redstart.ports.sql.recent import RecentRun, read_recent_runs

MAX_LISTED_RUNS = 20


def list_recent_runs(prefix: str, *, demo: bool = False, only_unfinished: bool = False) -> list[RecentRun]:
    """List the newest runs, or those of the last demo, whose IDs start with the prefix.

    A store in Postgres is slower, so its runs are not listed. With `only_unfinished`, list only runs that can still be
    paused or cancelled.
    """
    settings = configuration.load()
    if settings.store.url and not demo:
        return []
    file = settings.home / DEMO / DATABASE if demo else settings.home / DATABASE
    tenant = DEFAULT_TENANT if demo else settings.tenant
    return read_recent_runs(file, tenant=tenant, prefix=prefix, limit=MAX_LISTED_RUNS, unfinished=only_unfinished)
