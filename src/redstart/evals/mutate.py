"""Make tasks from a repo's own code: one small seeded change each, kept if a test that passed now fails."""

from __future__ import annotations

import hashlib
import random
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.core.frozen import clip
from redstart.core.report import Outcome
from redstart.evals.grading import Grader
from redstart.evals.task import Base, Task, TaskChange, TaskLanguage
from redstart.evals.task_repo import TaskFolder, open_site
from redstart.toolkit.base.git import GitFailed, run_git
from redstart.toolkit.honesty.mutant_sample import ProgramFile, sample_mutants
from redstart.toolkit.honesty.mutation import Mutant
from redstart.toolkit.languages.registry import is_parsable_code, is_test_path
from redstart.toolkit.patching.policy import find_protection

PER_FILE = 6
"""Maximum number of changes to try per file, so that a long file does not produce most of the tasks."""
SHORTEST, TIMEOUT_FACTOR = 30.0, 10.0
"""Time for the tests of a changed program: at least so many seconds, and so many times the unchanged duration."""


class MutationTask(NamedTuple):
    """A tried change and its task; None if no test noticed the change."""

    mutant: Mutant
    task: Task | None


async def mutate(
    app: AppContext, repo: Path, *, count: int, seed: int, python: str = ""
) -> AsyncIterator[MutationTask]:
    """Try changes in a seeded order, spread over files, kinds and functions, until `count` of them make a task.

    The repo stays unchanged; its tests run in the sandbox. Raises `ConfigError` if the repo has uncommitted changes,
    or no passing test.
    """
    grader = Grader(app)
    repo_task = Task(
        id=repo.resolve().name, base=Base(repo=str(repo.resolve()), commit=get_head_commit(repo)), python=python
    )
    with tempfile.TemporaryDirectory() as work:
        task_folder = open_site(app, repo_task, Path(work) / repo_task.slug)
        suite_run = await grader.run(task_folder, task_folder.spec.base)
        passing = {case.id for case in suite_run.cases if case.outcome is Outcome.passed}
        if not passing:
            raise ConfigError(f"no test of {repo} passes", remedy=clip(suite_run.report.fault, 600))
        seconds = max(SHORTEST, TIMEOUT_FACTOR * suite_run.report.seconds)
        wall_seconds = min(task_folder.spec.sandbox.wall, seconds)
        brief = task_folder.spec.model_copy(
            update={"sandbox": task_folder.spec.sandbox.model_copy(update={"wall": wall_seconds})}
        )
        task_folder = task_folder._replace(task=repo_task.model_copy(update={"seconds": seconds}), spec=brief)
        task_count = 0
        for mutant in _choose_mutants(app, task_folder, seed):
            if task_count == count:
                return
            task = await _make_task(app, grader, task_folder, mutant, passing)
            task_count += task is not None
            yield MutationTask(mutant, task)


def get_head_commit(repo: Path) -> str:
    """Return the checked-out commit. Empty for a directory that is not a git repo, or only part of one.

    Raises `ConfigError` if the directory does not exist or a tracked file has uncommitted changes: the code of a task
    must be available later.
    """
    if not repo.is_dir():
        raise ConfigError(f"{repo} is not a directory")
    try:
        head = run_git("rev-parse", "--verify", "HEAD", cwd=repo).decode().strip()
        is_part = bool(run_git("rev-parse", "--show-prefix", cwd=repo).strip())
    except GitFailed:
        return ""
    if is_part:
        return ""
    if run_git("status", "--porcelain", "--untracked-files=no", cwd=repo).strip():
        raise ConfigError(f"{repo} has uncommitted changes", remedy="commit or stash them first")
    return head


def _choose_mutants(app: AppContext, task_folder: TaskFolder, seed: int) -> list[Mutant]:
    """List the changes in the order to try them. It is the same for the same code and seed."""
    trees, base = app.trees, task_folder.spec.base
    mutants: list[Mutant] = []
    for path in trees.list_files(base):
        if is_parsable_code(path) and not (find_protection(path) or is_test_path(path)):
            text = trees.read(base, path) or b""
            mutants += sample_mutants({path: ProgramFile(b"", text)}, f"{seed}/{path}", PER_FILE)
    random.Random(seed).shuffle(mutants)  # noqa: S311  (not used for secrets)
    return mutants


async def _make_task(
    app: AppContext, grader: Grader, task_folder: TaskFolder, mutant: Mutant, passing: set[str]
) -> Task | None:
    text = app.trees.read(task_folder.spec.base, mutant.path) or b""
    try:
        before, after = text.decode(), mutant.apply_to(text).decode()
    except UnicodeDecodeError:
        return None
    mutated = app.trees.write(task_folder.spec.base, {mutant.path: mutant.apply_to(text)})
    suite_run = await grader.run(task_folder, mutated)
    failing = sorted(case.id for case in suite_run.cases if case.is_red and case.id in passing)
    # A file that can no longer be collected fails under its own ID, which never passed before.
    uncollected = (
        sorted(case.id for case in suite_run.cases if case.is_red and case.id not in passing) if not failing else []
    )
    if suite_run.problem or not (failing or uncollected):
        return None
    name = hashlib.sha256(f"{mutant.path}\x1f{mutant.start}\x1f{mutant.text!r}".encode()).hexdigest()[:8]
    return Task(
        id=f"{task_folder.task.id}/mutant-{name}",
        language=TaskLanguage.detect([mutant.path]),
        base=task_folder.task.base.model_copy(update={"change": TaskChange(files={mutant.path: after})}),
        red=tuple(failing),
        fix=TaskChange(files={mutant.path: before}),
        tags=("mutant", mutant.kind),
        seconds=task_folder.task.seconds,
        python=task_folder.task.python,
    )
