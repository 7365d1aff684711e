"""The runs that a user may mean by the beginning of an id, read quickly."""

from __future__ import annotations

from redstart.app import settings as configuration
from redstart.app.store_settings import DATABASE, DEMO, HOME
from redstart.ports.sql.recent import RecentRun, read_recent_runs

SHOWN = 20


def recent_runs(prefix: str, *, demo: bool = False) -> list[RecentRun]:
    """The newest runs, or those of the last demo, whose IDs begin so; none of a store in Postgres, which is slower."""
    settings = configuration.load()
    if demo:
        return read_recent_runs(settings.home / DEMO / DATABASE, tenant=HOME, prefix=prefix, limit=SHOWN)
    if settings.store.url:
        return []
    return read_recent_runs(settings.home / DATABASE, tenant=settings.tenant, prefix=prefix, limit=SHOWN)
