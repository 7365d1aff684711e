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
from redstart.core.noun import clip
from redstart.core.report import Outcome
from redstart.evals.grading import Grader
from redstart.evals.sealed import TaskFolder, open_site
from redstart.evals.task import Base, Task, TaskChange, TaskLanguage
from redstart.toolkit.base.git import GitFailed, git
from redstart.toolkit.honesty.mutant import Mutant
from redstart.toolkit.honesty.mutants import ProgramFile, sample
from redstart.toolkit.languages.registry import is_test_path, reads_code
from redstart.toolkit.patching.policy import protected

PER_FILE = 6
"""Maximum number of changes to try per file, so that a long file does not produce most of the tasks."""
SHORTEST, LONGER = 30.0, 10.0
"""Time for the tests of a changed program: at least so many seconds, and so many times the unchanged duration."""


class MutationTask(NamedTuple):
    """A tried change and its task; None if no test noticed the change."""

    mutant: Mutant
    task: Task | None


async def mutate(
    house: AppContext, repo: Path, *, count: int, seed: int, python: str = ""
) -> AsyncIterator[MutationTask]:
    """Try changes in a seeded order, spread over files, kinds and functions, until `count` of them make a task.

    The repo stays unchanged; its tests run in the sandbox. Raises `ConfigError` if the repo has uncommitted changes,
    or no passing test.
    """
    grader = Grader(house)
    whole = Task(id=repo.resolve().name, base=Base(repo=str(repo.resolve()), commit=head_of(repo)), python=python)
    with tempfile.TemporaryDirectory() as work:
        site = open_site(house, whole, Path(work) / whole.slug)
        first = await grader.run(site, site.spec.base)
        green = {case.id for case in first.cases if case.outcome is Outcome.passed}
        if not green:
            raise ConfigError(f"no test of {repo} passes", remedy=clip(first.report.fault, 600))
        seconds = max(SHORTEST, LONGER * first.report.seconds)
        wall = min(site.spec.sandbox.wall, seconds)
        brief = site.spec.model_copy(update={"sandbox": site.spec.sandbox.model_copy(update={"wall": wall})})
        site = site._replace(task=whole.model_copy(update={"seconds": seconds}), spec=brief)
        made = 0
        for mutant in _chosen(house, site, seed):
            if made == count:
                return
            task = await _task(house, grader, site, mutant, green)
            made += task is not None
            yield MutationTask(mutant, task)


def head_of(repo: Path) -> str:
    """Return the checked-out commit. Empty for a directory that is not a git repo, or only part of one.

    Raises `ConfigError` if the directory does not exist or a tracked file has uncommitted changes: the code of a task
    must be available later.
    """
    if not repo.is_dir():
        raise ConfigError(f"{repo} is not a directory")
    try:
        head = git("rev-parse", "--verify", "HEAD", cwd=repo).decode().strip()
        is_part = bool(git("rev-parse", "--show-prefix", cwd=repo).strip())
    except GitFailed:
        return ""
    if is_part:
        return ""
    if git("status", "--porcelain", "--untracked-files=no", cwd=repo).strip():
        raise ConfigError(f"{repo} has uncommitted changes", remedy="commit or stash them first")
    return head


def _chosen(house: AppContext, site: TaskFolder, seed: int) -> list[Mutant]:
    """List the changes in the order to try them. It is the same for the same code and seed."""
    trees, base = house.trees, site.spec.base
    chosen: list[Mutant] = []
    for path in trees.files(base):
        if reads_code(path) and not (protected(path) or is_test_path(path)):
            text = trees.read(base, path) or b""
            chosen += sample({path: ProgramFile(b"", text)}, f"{seed}/{path}", PER_FILE)
    random.Random(seed).shuffle(chosen)  # noqa: S311  (not used for secrets)
    return chosen


async def _task(house: AppContext, grader: Grader, site: TaskFolder, mutant: Mutant, green: set[str]) -> Task | None:
    text = house.trees.read(site.spec.base, mutant.path) or b""
    try:
        before, after = text.decode(), mutant.of(text).decode()
    except UnicodeDecodeError:
        return None
    broken = house.trees.write(site.spec.base, {mutant.path: mutant.of(text)})
    done = await grader.run(site, broken)
    red = sorted(case.id for case in done.cases if case.red and case.id in green)
    # A file that can no longer be collected fails under its own ID, which never passed before.
    gone = sorted(case.id for case in done.cases if case.red and case.id not in green) if not red else []
    if done.trouble or not (red or gone):
        return None
    name = hashlib.sha256(f"{mutant.path}\x1f{mutant.start}\x1f{mutant.text!r}".encode()).hexdigest()[:8]
    return Task(
        id=f"{site.task.id}/mutant-{name}",
        language=TaskLanguage.of([mutant.path]),
        base=site.task.base.model_copy(update={"change": TaskChange(files={mutant.path: after})}),
        red=tuple(red),
        fix=TaskChange(files={mutant.path: before}),
        tags=("mutant", mutant.kind),
        seconds=site.task.seconds,
        python=site.task.python,
    )
