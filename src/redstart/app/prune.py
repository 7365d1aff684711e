"""Forgetting old runs, and with them what nothing else needs."""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redstart.core.noun import Noun
from redstart.ports.sql.engine import Database
from redstart.ports.sql.prune import BLOB_NAME, SqlPrune
from redstart.toolkit.repo.trees import alive

DAY = 86_400.0
FRESH = 3_600.0
"""A blob that was written this many seconds ago may belong to a step that is not committed yet: it stays."""


class Swept(Noun):
    """What went, or with a dry run would go."""

    runs: tuple[str, ...] = ()
    blobs: int = 0
    patches: int = 0
    folders: int = 0
    size: int = 0
    """Bytes of blobs and patches. The database keeps its size and fills the space with new runs."""


async def prune(home: Path, *, days: float, keep: int, dry: bool, now: float) -> Swept:
    """Removes ended runs older than so many days, but for the `keep` newest; what was learned from them stays.

    Then goes what no run that is left needs: blobs, patches of the removed runs, work folders of processes that are no
    more. Where there is no data yet, nothing is made. Raises `StoreError` for a store that cannot be used.
    """
    path = home / "redstart.db"
    if not path.is_file():
        return Swept()
    with Database.open(path) as database:
        pruned = await SqlPrune(database).prune(now - days * DAY, keep, dry=dry)
    blobs = home / "blobs"
    needed = _closed(pruned.named, blobs)
    unneeded = [one for one in _blobs(blobs) if one.name not in needed and _is_old(one, now)]
    patches = [one for run_id in pruned.runs if (one := home / "patches" / f"{run_id}.patch").is_file()]
    folders = list(_left_behind(home / "snapshots" / "work"))
    size = sum(_size(one) for one in (*unneeded, *patches))
    if not dry:
        _remove(unneeded, lambda one: one.unlink(missing_ok=True) if _is_old(one, now) else None)
        _remove(patches, lambda one: one.unlink(missing_ok=True))
        _remove(folders, lambda one: shutil.rmtree(one, ignore_errors=True))
    return Swept(runs=pruned.runs, blobs=len(unneeded), patches=len(patches), folders=len(folders), size=size)


def _closed(named: frozenset[str], blobs: Path) -> set[str]:
    """With the blobs that those blobs name: a journaled execution is one, and names the pack and diff of its snapshot.

    Only JSON names others; packs, diffs and outputs hold none. A test's output that happens to hold such a name keeps
    a blob too long, which does no harm.
    """
    needed: set[str] = set()
    waiting = set(named)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting |= {found for found in _names_in(blobs / name[:2] / name) if found not in needed}
    return needed


def _names_in(blob: Path) -> Iterable[str]:
    try:
        with blob.open("rb") as file:
            if file.read(1) != b"{":
                return ()
            return BLOB_NAME.findall(file.read().decode(errors="replace"))
    except OSError:
        return ()


def _blobs(folder: Path) -> Iterator[Path]:
    """Every blob, and what an interrupted write left beside them."""
    for one in folder.glob("??/*"):
        if BLOB_NAME.fullmatch(one.name) or one.name.startswith(".new-"):
            yield one


def _is_old(path: Path, now: float) -> bool:
    try:
        return path.stat().st_mtime < now - FRESH
    except OSError:
        return False


def _left_behind(work: Path) -> Iterator[Path]:
    """Work folders whose process, by which they are named, is no more."""
    for one in work.iterdir() if work.is_dir() else ():
        pid = one.name.partition("-")[0]
        if pid.isdigit() and not alive(int(pid)):
            yield one


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
