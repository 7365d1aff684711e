"""List the runs that match the beginning of an ID, quickly."""

from __future__ import annotations

from redstart.app import settings as configuration
from redstart.app.settings.store import DATABASE, DEMO, HOME
from redstart.ports.sql.recent import RecentRun, read_recent_runs

SHOWN = 20


def recent_runs(prefix: str, *, demo: bool = False, unfinished: bool = False) -> list[RecentRun]:
    """List the newest runs, or those of the last demo, whose IDs start with the prefix.

    A store in Postgres is slower, so its runs are not listed. With `unfinished`, list only runs that can still be
    paused or cancelled.
    """
    settings = configuration.load()
    if settings.store.url and not demo:
        return []
    file = settings.home / DEMO / DATABASE if demo else settings.home / DATABASE
    tenant = HOME if demo else settings.tenant
    return read_recent_runs(file, tenant=tenant, prefix=prefix, limit=SHOWN, unfinished=unfinished)
