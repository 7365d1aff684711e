"""Use cases: put what a run made into the user's working tree or on a branch, and take it back."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from redstart.app.runs import result_snapshot
from redstart.app.wire import House
from redstart.core.errors import ConfigError
from redstart.core.run import RunState
from redstart.toolkit.repo.git import require_git
from redstart.toolkit.repo.handover import (
    Desk,
    Outcome,
    apply_patch,
    changes_between,
    commit_on_branch,
    undo_patch,
)


async def apply_run(house: House, run_id: str, *, branch: str | None = None) -> Outcome:
    """Puts the verified patch of a run into the folder it was started in, or on a new branch there.

    Files that moved on since are merged. Where one conflicts nothing is written. Raises `ConfigError` where the run has
    no verified patch, where its folder is gone, and where the branch cannot be made.
    """
    require_git()
    state = await house.adapters.store.load(run_id)
    snapshot = result_snapshot(state)
    if snapshot is None:
        raise ConfigError(f"run {run_id} has no verified patch", remedy=f"redstart show {run_id} says how it stands")
    desk = await _desk(house, state)
    changes = changes_between(house.trees, state.spec.base, snapshot)
    with _alone(desk):
        if branch is None:
            return apply_patch(desk, changes)
        return commit_on_branch(desk.root, changes, branch, f"Make red tests green\n\nBy redstart, run {run_id}.")


async def undo_run(house: House, run_id: str) -> Outcome:
    """Takes back what `apply_run` wrote into the folder. Raises `ConfigError` where the folder is gone,
    and `StoreError` for an unknown run."""
    require_git()
    desk = await _desk(house, await house.adapters.store.load(run_id))
    with _alone(desk):
        return undo_patch(desk)


async def _desk(house: House, state: RunState) -> Desk:
    run_id = state.run_id
    (row,) = await house.adapters.store.runs(prefix=run_id, limit=1)
    root = Path(row.folder)
    for _ in PurePosixPath(state.spec.suite.folder).parts:
        root = root.parent
    if not root.is_dir():
        raise ConfigError(f"the folder of run {run_id} is gone: {root}")
    record = house.settings.home / "applied" / f"{run_id}.json"
    return Desk(root.resolve(), house.adapters.blobs, record, run_id)


@contextmanager
def _alone(desk: Desk) -> Generator[None]:
    """Waits until nobody else hands anything over: two at once would each see the other's files half written."""
    desk.record.parent.mkdir(parents=True, exist_ok=True)
    with (desk.record.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
