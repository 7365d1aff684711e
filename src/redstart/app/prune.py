"""Remove old runs, and the data that only they need."""

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
"""A blob younger than this may belong to a step that is not committed yet, so it is kept."""


class PruneReport(FrozenValue):
    """What was removed, or would be removed by a dry run."""

    runs: tuple[str, ...] = ()
    blobs: int = 0
    patches: int = 0
    folders: int = 0
    size: int = 0
    """Bytes of blobs and patches. The database keeps its size and fills the space with new runs."""


async def prune(settings: Settings, *, days: float, keep: int, dry: bool, now: float) -> PruneReport:
    """Remove ended runs older than `days`, except the `keep` newest. Fix cards and lessons from them stay.

    A run has ended if it finished, failed or was cancelled, or if nothing drives it any more. A run that is queued,
    is running or needs input stays.

    Then remove what no remaining run needs: blobs, patches of the removed runs, and work folders of processes that no
    longer exist. Only the data of the settings' tenant is affected. If there is no data yet, nothing is created.
    Raises `StoreError` for a store that cannot be used.
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
    """Return these blobs and all blobs that they name. A journaled execution names its snapshot's pack and diff.

    Only JSON names other blobs; packs, diffs and outputs do not. If a test's output happens to contain such a name,
    a blob is kept too long, which does no harm.
    """
    needed: set[str] = set()
    waiting = set(named)
    while waiting:
        needed |= waiting
        waiting = {found for text in blobs.texts(waiting) for found in BLOB_NAME.findall(text)} - needed
    return needed


def _left_behind(work: Path) -> Iterator[Path]:
    """Yield work folders whose process, which gives them their name, no longer exists."""
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
