"""Remove old runs, and the data that only they need."""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redstart.app.run_status import resolve_row_status
from redstart.app.settings import Settings
from redstart.app.settings.store import find_tenant_folder
from redstart.app.wire import create_blob_store, open_database
from redstart.core.frozen import FrozenValue
from redstart.core.run import Status
from redstart.ports.sql.prune import BLOB_NAME, SqlPrune
from redstart.ports.store.port.blobs import SweptBlobs
from redstart.toolkit.repo.trees import is_alive

DAY = 86_400.0
PRUNABLE_STATUSES = (Status.finished, Status.failed, Status.cancelled, Status.paused)
MIN_BLOB_AGE_SECONDS = 3_600.0
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

    A run has ended if it finished, failed or was cancelled, or if no process drives it any more. A run that is queued,
    running or needs input is kept.

    Then remove what no remaining run needs: blobs, patches of the removed runs, and work folders of processes that no
    longer exist. Only the data of the settings' tenant is affected. If there is no data yet, nothing is created.
    Raises `StoreError` for a store that cannot be used.
    """
    if not settings.store.url and not (settings.home / "redstart.db").is_file():
        return PruneReport()
    old = now - MIN_BLOB_AGE_SECONDS
    with open_database(settings) as root_database:
        database = root_database.for_tenant(settings.tenant)
        prune_result = await SqlPrune(database).prune(
            now - days * DAY, keep, is_over=lambda row: resolve_row_status(row, now) in PRUNABLE_STATUSES, dry=dry
        )
        blobs = create_blob_store(settings, database)
        needed = collect_reachable_blobs(prune_result.blob_names, blobs)
        unneeded = [item for item in blobs.list_blobs() if item.name not in needed and item.put_at < old]
        if not dry:
            blobs.drop([item.name for item in unneeded], old)
    patch_folder = settings.home / "patches"
    patches = [path for run_id in prune_result.runs if (path := patch_folder / f"{run_id}.patch").is_file()]
    folders = list(_find_abandoned_folders(find_tenant_folder(settings.home, settings.tenant) / "snapshots" / "work"))
    size = sum(item.size for item in unneeded) + sum(map(_measure_size, patches))
    if not dry:
        _remove(patches, lambda patch: patch.unlink(missing_ok=True))
        _remove(folders, lambda folder: shutil.rmtree(folder, ignore_errors=True))
    return PruneReport(
        runs=prune_result.runs, blobs=len(unneeded), patches=len(patches), folders=len(folders), size=size
    )


def collect_reachable_blobs(blob_names: frozenset[str], blobs: SweptBlobs) -> set[str]:
    """Return these blobs and all blobs that they name. A journaled execution names its snapshot's pack and diff.

    Only JSON names other blobs; packs, diffs and outputs do not. If a test's output happens to contain such a name,
    a blob is kept too long, which does no harm.
    """
    needed: set[str] = set()
    waiting = set(blob_names)
    while waiting:
        needed |= waiting
        waiting = {name for text in blobs.read_texts(waiting) for name in BLOB_NAME.findall(text)} - needed
    return needed


def _find_abandoned_folders(work: Path) -> Iterator[Path]:
    """Yield work folders whose process, which gives them their name, no longer exists."""
    for path in work.iterdir() if work.is_dir() else ():
        pid = path.name.partition("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            yield path


def _measure_size(path: Path) -> int:
    try:
        status = path.lstat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _remove(paths: Iterable[Path], remove: Callable[[Path], None]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            remove(path)
