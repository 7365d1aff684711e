"""Use cases: apply the patch of a run to the user's working tree or a branch, and undo it."""

from __future__ import annotations

import fcntl
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from redstart.app.runs import result_snapshot
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.noun import many
from redstart.core.report import Ids
from redstart.core.run import RunState
from redstart.core.visible import one_line
from redstart.toolkit.base.git import require_git
from redstart.toolkit.repo.handover import (
    HandoverContext,
    HandoverOutcome,
    apply_patch,
    changes_between,
    commit_on_branch,
    undo_patch,
)

LINE = 72
"""The line length of a commit message that git's own tools expect."""


async def apply_run(house: AppContext, run_id: str, *, branch: str | None = None) -> HandoverOutcome:
    """Apply the verified patch of a run to the folder where it was started, or commit it on a new branch there.

    Merge files that changed since. If a file conflicts, write nothing. Raises `ConfigError` if the run has no verified
    patch, its folder no longer exists, or the branch cannot be created.
    """
    require_git()
    state = await house.adapters.store.load(run_id)
    snapshot = result_snapshot(state)
    if snapshot is None:
        raise ConfigError(f"run {run_id} has no verified patch", remedy=f"see how it ended: redstart show {run_id}")
    desk = await _desk(house, state)
    changes = changes_between(house.trees, state.spec.base, snapshot)
    with _alone(desk):
        if branch is None:
            return apply_patch(desk, changes)
        return commit_on_branch(desk.root, changes, branch, commit_message(state))


def commit_message(state: RunState) -> str:
    """Format the model's reason for the change; without one, name the tests that it fixes.

    The model's text is one printable line, so it can neither add a trailer nor control a terminal.
    """
    why = one_line(state.now.patch.why) if state.now.patch else ""
    title = _title(why or _without_words(state))
    body = textwrap.fill(why, LINE, break_on_hyphens=False) if title.endswith("…") else ""
    return "\n\n".join(part for part in (title, body, f"By Redstart, run {state.run_id}.") if part)


def _title(text: str) -> str:
    """Format a title as a git log shows it: one line, cut at a word, with a capital letter and no period."""
    short = text.rstrip(". ")
    if len(short) > LINE:
        head = short[: LINE - 1]
        short = (head.rpartition(" ")[0] or head).rstrip(",;:. ") + "…"
    return short[:1].upper() + short[1:]


def _without_words(state: RunState) -> str:
    if state.spec.begins_cycles:
        return f"Apply {many(state.work.kept, 'improvement')}"
    fixed = state.now.test.verdict.fixed if state.now.test else Ids()
    if not fixed:
        return f"Create {one_line(state.spec.goal)}" if state.spec.task.makes_program else "Fix the failing tests"
    names = ", ".join(one_line(name.rpartition("::")[2]) for name in fixed.first[:3])
    return f"Fix {names}" if fixed.count <= 3 else f"Fix {names} and {fixed.count - 3} more"


async def undo_run(house: AppContext, run_id: str) -> HandoverOutcome:
    """Undo the changes of `apply_run` in the folder. Raises `ConfigError` if the folder no longer exists,
    and `StoreError` for an unknown run."""
    require_git()
    desk = await _desk(house, await house.adapters.store.load(run_id))
    with _alone(desk):
        return undo_patch(desk)


async def _desk(house: AppContext, state: RunState) -> HandoverContext:
    run_id = state.run_id
    (row,) = await house.adapters.store.runs(prefix=run_id, limit=1)
    root = Path(row.folder)
    for _ in PurePosixPath(state.spec.suite.folder).parts:
        root = root.parent
    if not root.is_dir():
        raise ConfigError(
            f"the directory of run {run_id} no longer exists: {root}",
            remedy=f"print the patch instead: redstart show {run_id}",
        )
    record = house.settings.home / "applied" / f"{run_id}.json"
    return HandoverContext(root.resolve(), house.adapters.blobs, record, run_id)


@contextmanager
def _alone(desk: HandoverContext) -> Generator[None]:
    """Wait until no other handover is active: two at once would see each other's half-written files."""
    desk.record.parent.mkdir(parents=True, exist_ok=True)
    with (desk.record.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
