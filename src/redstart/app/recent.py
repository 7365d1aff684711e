"""The runs that a user may mean by the beginning of an id, read quickly."""

from __future__ import annotations

from redstart.app import settings as configuration
from redstart.ports.sql.recent import RecentRun, read_recent_runs

SHOWN = 20


def recent_runs(prefix: str) -> list[RecentRun]:
    """The newest runs of a store in a file whose ids begin so; none of a store in Postgres, which takes too long."""
    settings = configuration.load()
    if settings.store.url:
        return []
    return read_recent_runs(settings.home / "redstart.db", tenant=settings.tenant, prefix=prefix, limit=SHOWN)
