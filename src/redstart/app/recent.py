"""The runs that a user may mean by the beginning of an id, read quickly."""

from __future__ import annotations

from redstart.app import settings as configuration
from redstart.app.settings.store import DATABASE, DEMO, HOME
from redstart.ports.sql.recent import RecentRun, read_recent_runs

SHOWN = 20


def recent_runs(prefix: str, *, demo: bool = False, unfinished: bool = False) -> list[RecentRun]:
    """The newest runs, or those of the last demo, whose IDs begin so; none of a store in Postgres, which is slower.

    With `unfinished` only those that can still be paused or cancelled.
    """
    settings = configuration.load()
    if settings.store.url and not demo:
        return []
    file = settings.home / DEMO / DATABASE if demo else settings.home / DATABASE
    tenant = HOME if demo else settings.tenant
    return read_recent_runs(file, tenant=tenant, prefix=prefix, limit=SHOWN, unfinished=unfinished)
