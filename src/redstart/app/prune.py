"""Forgetting old runs, and with them what nothing else needs."""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redstart.app.settings import Settings
from redstart.app.settings.store import folder_of
from redstart.app.standing import row_status
from redstart.app.wire import blobs_of, open_database
from redstart.core.noun import FrozenValue
from redstart.core.run import Status
from redstart.ports.sql.prune import BLOB_NAME, SqlPrune
from redstart.ports.store.port.blobs import SweptBlobs
from redstart.toolkit.repo.trees import alive

DAY = 86_400.0
OVER = (Status.finished, Status.failed, Status.cancelled, Status.paused)
FRESH = 3_600.0
"""A blob that was written this many seconds ago may belong to a step that is not committed yet: it stays."""


class PruneReport(FrozenValue):
    """What went, or with a dry run would go."""

    runs: tuple[str, ...] = ()
    blobs: int = 0
    patches: int = 0
    folders: int = 0
    size: int = 0
    """Bytes of blobs and patches. The database keeps its size and fills the space with new runs."""


async def prune(settings: Settings, *, days: float, keep: int, dry: bool, now: float) -> PruneReport:
    """Removes runs that are over, older than so many days, but for the `keep` newest; what was learned from them stays.

    Over is what finished, failed or was cancelled, and what nobody drives any more. A run that is queued, is running or
    needs input stays.

    Then goes what no run that is left needs: blobs, patches of the removed runs, work folders of processes that are no
    more. All of it is the settings' tenant's. Where there is no data yet, nothing is made. Raises `StoreError` for a
    store that cannot be used.
    """
    if not settings.store.url and not (settings.home / "redstart.db").is_file():
        return PruneReport()
    old = now - FRESH
    with open_database(settings) as opened:
        database = opened.of(settings.tenant)
        pruned = await SqlPrune(database).prune(
            now - days * DAY, keep, is_over=lambda row: row_status(row, now) in OVER, dry=dry
        )
        blobs = blobs_of(settings, database)
        needed = closed(pruned.named, blobs)
        unneeded = [item for item in blobs.kept() if item.name not in needed and item.put < old]
        if not dry:
            blobs.drop([item.name for item in unneeded], old)
    of_run = settings.home / "patches"
    patches = [one for run_id in pruned.runs if (one := of_run / f"{run_id}.patch").is_file()]
    folders = list(_left_behind(folder_of(settings.home, settings.tenant) / "snapshots" / "work"))
    size = sum(item.size for item in unneeded) + sum(map(_size, patches))
    if not dry:
        _remove(patches, lambda patch: patch.unlink(missing_ok=True))
        _remove(folders, lambda folder: shutil.rmtree(folder, ignore_errors=True))
    return PruneReport(runs=pruned.runs, blobs=len(unneeded), patches=len(patches), folders=len(folders), size=size)


def closed(named: frozenset[str], blobs: SweptBlobs) -> set[str]:
    """With the blobs that those blobs name: a journaled execution is one, and names the pack and diff of its snapshot.

    Only JSON names others; packs, diffs and outputs hold none. A test's output that happens to hold such a name keeps
    a blob too long, which does no harm.
    """
    needed: set[str] = set()
    waiting = set(named)
    while waiting:
        needed |= waiting
        waiting = {found for text in blobs.texts(waiting) for found in BLOB_NAME.findall(text)} - needed
    return needed


def _left_behind(work: Path) -> Iterator[Path]:
    """Work folders whose process, by which they are named, is no more."""
    for path in work.iterdir() if work.is_dir() else ():
        pid = path.name.partition("-")[0]
        if pid.isdigit() and not alive(int(pid)):
            yield path


def _size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _remove(paths: Iterable[Path], how: Callable[[Path], None]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            how(path)
