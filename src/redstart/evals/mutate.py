"""Tasks made from a repo's own code: one small seeded change each, kept where a test that was green goes red."""

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
"""Changes of one file that are tried at the most, so that a long file does not make most of the tasks."""
SHORTEST, LONGER = 30.0, 10.0
"""Seconds that the tests of a changed program have, and how many times as long as those of the whole one."""


class MutationTask(NamedTuple):
    """One change that was tried, and the task it makes; None where no test noticed it."""

    mutant: Mutant
    task: Task | None


async def mutate(
    house: AppContext, repo: Path, *, count: int, seed: int, python: str = ""
) -> AsyncIterator[MutationTask]:
    """Tries changes in a seeded order, spread over files, kinds and functions, until `count` of them make a task.

    The repo is not touched; its tests are run in the sandbox. Raises `ConfigError` where its files are not as
    committed, or no test of it is green.
    """
    grader = Grader(house)
    whole = Task(id=repo.resolve().name, base=Base(repo=str(repo.resolve()), commit=head_of(repo)), python=python)
    with tempfile.TemporaryDirectory() as work:
        site = open_site(house, whole, Path(work) / whole.slug)
        first = await grader.run(site, site.spec.base)
        green = {case.id for case in first.cases if case.outcome is Outcome.passed}
        if not green:
            raise ConfigError(f"no test of {repo} is green", remedy=clip(first.report.fault, 600))
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
    """The commit that is checked out; empty for a folder that is no git repo, or a part of one.

    Raises `ConfigError` where there is no such folder, and where a tracked file is not as committed: a task must be
    found again later.
    """
    if not repo.is_dir():
        raise ConfigError(f"{repo} is no folder")
    try:
        head = git("rev-parse", "--verify", "HEAD", cwd=repo).decode().strip()
        is_part = bool(git("rev-parse", "--show-prefix", cwd=repo).strip())
    except GitFailed:
        return ""
    if is_part:
        return ""
    if git("status", "--porcelain", "--untracked-files=no", cwd=repo).strip():
        raise ConfigError(f"{repo} has changes that are not committed", remedy="commit or stash them first")
    return head


def _chosen(house: AppContext, site: TaskFolder, seed: int) -> list[Mutant]:
    """In the order in which they are tried; the same for the same code and seed."""
    trees, base = house.trees, site.spec.base
    chosen: list[Mutant] = []
    for path in trees.files(base):
        if reads_code(path) and not (protected(path) or is_test_path(path)):
            text = trees.read(base, path) or b""
            chosen += sample({path: ProgramFile(b"", text)}, f"{seed}/{path}", PER_FILE)
    random.Random(seed).shuffle(chosen)  # noqa: S311  (nothing is kept secret by it)
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
    # A whole file that cannot be collected any more has an id of its own, which was never green.
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
