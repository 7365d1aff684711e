"""Use cases: apply the patch of a run to the user's working tree or a branch, and undo it."""

from __future__ import annotations

import fcntl
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from redstart.app.runs import get_result_snapshot
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.frozen import format_count
from redstart.core.report import Ids
from redstart.core.run import Result, RunState
from redstart.core.safe_text import to_one_line
from redstart.toolkit.base.git import require_git
from redstart.toolkit.honesty.verdict.set_aside import list_set_aside, load_ids
from redstart.toolkit.repo.handover import (
    HandoverContext,
    HandoverOutcome,
    apply_patch,
    commit_on_branch,
    list_changes,
    undo_patch,
)

LINE = 72
"""The line length of a commit message that git's own tools expect."""


class PartialPatch(NamedTuple):
    """A patch that leaves failing tests as they are, for a person who decides whether to apply it."""

    reason: str
    """What the patch fixes, and why the other tests still fail."""
    diff: str
    failing_tests: tuple[str, ...]


async def find_partial_patch(app: AppContext, run_id: str) -> PartialPatch | None:
    """Return the patch of a run whose result is partial; None for any other result."""
    state = await app.adapters.store.load(run_id)
    snapshot = get_result_snapshot(state)
    if state.result is not Result.partial or snapshot is None:
        return None
    failing_tests = tuple(sorted(load_ids(list_set_aside(state), app.adapters.blobs)))
    return PartialPatch(state.reason, app.trees.diff(state.spec.base, snapshot).decode(errors="replace"), failing_tests)


async def apply_run(
    app: AppContext, run_id: str, *, branch: str | None = None, allow_partial: bool = False
) -> HandoverOutcome:
    """Apply the verified patch of a run to the folder where it was started, or commit it on a new branch there.

    Merge files that changed since. If a file conflicts, write nothing. With `allow_partial`, the patch may leave
    failing tests that are set aside. Raises `ConfigError` if the run has no such patch, its folder no longer exists,
    or the branch cannot be created.
    """
    require_git()
    state = await app.adapters.store.load(run_id)
    snapshot = get_result_snapshot(state)
    if snapshot is None:
        raise ConfigError(f"run {run_id} has no verified patch", remedy=f"see how it ended: redstart show {run_id}")
    if state.result is Result.partial and not allow_partial:
        raise ConfigError(
            f"the patch of run {run_id} is partial: {state.reason}",
            remedy=f"apply it anyway: redstart apply {run_id} --partial",
        )
    context = await _create_handover_context(app, state)
    changes = list_changes(app.trees, state.spec.base, snapshot)
    with _lock_handovers(context):
        if branch is None:
            return apply_patch(context, changes)
        return commit_on_branch(context.root, changes, branch, commit_message(state))


def commit_message(state: RunState) -> str:
    """Format the model's reason for the change; without one, name the tests that it fixes.

    The model's text is one printable line, so it can neither add a trailer nor control a terminal.
    """
    reason = to_one_line(state.now.patch.why) if state.now.patch else ""
    title = _format_title(reason or _without_words(state))
    body = textwrap.fill(reason, LINE, break_on_hyphens=False) if title.endswith("…") else ""
    return "\n\n".join(part for part in (title, body, f"By Redstart, run {state.run_id}.") if part)


def _format_title(text: str) -> str:
    """Format a title as a git log shows it: one line, cut at a word, with a capital letter and no period."""
    title = text.rstrip(". ")
    if len(title) > LINE:
        head = title[: LINE - 1]
        title = (head.rpartition(" ")[0] or head).rstrip(",;:. ") + "…"
    return title[:1].upper() + title[1:]


def _without_words(state: RunState) -> str:
    if state.spec.has_cycles:
        return f"Apply {format_count(state.work.kept, 'improvement')}"
    fixed = state.now.test.verdict.fixed if state.now.test else Ids()
    if not fixed:
        return f"Create {to_one_line(state.spec.goal)}" if state.spec.task.makes_program else "Fix the failing tests"
    names = ", ".join(to_one_line(name.rpartition("::")[2]) for name in fixed.first[:3])
    return f"Fix {names}" if fixed.count <= 3 else f"Fix {names} and {fixed.count - 3} more"


async def undo_run(app: AppContext, run_id: str) -> HandoverOutcome:
    """Undo the changes of `apply_run` in the folder. Raises `ConfigError` if the folder no longer exists,
    and `StoreError` for an unknown run."""
    require_git()
    context = await _create_handover_context(app, await app.adapters.store.load(run_id))
    with _lock_handovers(context):
        return undo_patch(context)


async def _create_handover_context(app: AppContext, state: RunState) -> HandoverContext:
    run_id = state.run_id
    (row,) = await app.adapters.store.list_runs(prefix=run_id, limit=1)
    root = Path(row.folder)
    for _ in PurePosixPath(state.spec.suite.folder).parts:
        root = root.parent
    if not root.is_dir():
        raise ConfigError(
            f"the directory of run {run_id} no longer exists: {root}",
            remedy=f"print the patch instead: redstart show {run_id}",
        )
    record = app.settings.home / "applied" / f"{run_id}.json"
    return HandoverContext(root.resolve(), app.adapters.blobs, record, run_id)


@contextmanager
def _lock_handovers(context: HandoverContext) -> Generator[None]:
    """Wait until no other handover is active: two at once would see each other's half-written files."""
    context.record.parent.mkdir(parents=True, exist_ok=True)
    with (context.record.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
