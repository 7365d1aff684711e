"""Collect the past bugs of a repo as tasks with hidden tests, once: a comparison that continues has the same tasks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from redstart.app.settings import Settings
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError, StoreError
from redstart.core.frozen import clip
from redstart.evals.app import get_checks_file, make_safe_name
from redstart.evals.grading import Grader
from redstart.evals.mine import FixCandidate, check_candidate, make_task
from redstart.evals.task import Task, read_tasks, write_tasks
from redstart.evals.verify import TaskCheck, keep_verified, read_verified, remove_partial_line

OnChecked = Callable[[TaskCheck], None]


class HistorySearch(NamedTuple):
    """What to look for, and how long."""

    repo: Path
    most: int
    """Maximum number of tasks."""
    seconds: float
    """Checking another candidate stops after this time."""
    python: str = ""


def name_comparison(repo: Path, most: int) -> str:
    """Return the name for a comparison on this repo. It is the same for all models, so that they share the tasks."""
    path = repo.resolve()
    mark = hashlib.sha256(f"{path}\n{most}".encode()).hexdigest()[:8]
    return make_safe_name(f"{path.name}-{mark}")


def get_tasks_file(settings: Settings, name: str) -> Path:
    """Return the file that holds the tasks of a comparison. `redstart eval run` reads it too."""
    return settings.home / "evals" / "comparisons" / f"{name}.jsonl"


def read_collected(file: Path) -> list[Task]:
    """Read the tasks that an earlier start collected. Empty if there was none."""
    return read_tasks(file.read_text(encoding="utf-8"), str(file)) if file.is_file() else []


def keep_collected(tasks: list[Task], file: Path) -> None:
    """Store the tasks, all or none. Raises `StoreError` if they cannot be written."""
    partial = file.with_suffix(f".{os.getpid()}.partial")
    try:
        write_tasks(tasks, partial)
        partial.replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from error


async def collect_bugs(
    app: AppContext, search: HistorySearch, candidates: Iterable[FixCandidate], on_checked: OnChecked
) -> list[Task]:
    """Return the newest usable tasks of the candidates. `app` has a sandbox.

    Each check is stored at once: a search that was killed continues without repeating it.
    """
    file, clock = get_checks_file(app.settings), app.adapters.world.monotonic
    remove_partial_line(file)
    checks, grader, ends = read_verified(file), Grader(app), clock() + search.seconds
    tasks: list[Task] = []
    for candidate in candidates:
        if len(tasks) == search.most or clock() >= ends:
            break
        task = make_task(search.repo, candidate, hide_tests=True, python=search.python)
        if task is None:
            continue
        if task.digest not in checks:
            check = await _check_task(app, grader, task)
            keep_verified(file, check)
            checks[task.digest] = check
        on_checked(checks[task.digest])
        tasks += [task] if checks[task.digest].ok else []
    return tasks


async def _check_task(app: AppContext, grader: Grader, task: Task) -> TaskCheck:
    """Check a candidate. The check carries the tests that must pass, so the task itself stays as it was made."""
    try:
        check = (await check_candidate(app, grader, task)).verified
    except ConfigError as error:
        return TaskCheck(task=task.id, digest=task.digest, ok=False, why=clip(str(error), 300))
    return check.model_copy(update={"digest": task.digest})
