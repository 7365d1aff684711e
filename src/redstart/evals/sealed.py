"""A task laid out so that its answer is nowhere in reach: a fresh git repo of one commit, without the hidden tests.

Nothing of the source's history is copied. What runs in there runs in the sandbox, which has no network and sees no
folder beside the repo.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from redstart.app.ground import equip, take_ground
from redstart.app.runs import keep_environment
from redstart.app.wire import AppContext
from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.run import RunSpec, Suite
from redstart.core.shell import SandboxLimits
from redstart.core.tasks import FixTask
from redstart.evals.task import Task, TaskChange
from redstart.ports.store.port.trees import DiffRefused
from redstart.toolkit.base.git import GitFailed, git
from redstart.toolkit.repo.trees import GitTrees

_COMMIT = """tree {tree}
author task <task@localhost> 946684800 +0000
committer task <task@localhost> 946684800 +0000

The task as it is given
"""


class TaskFolder(NamedTuple):
    """A task laid out in a folder."""

    task: Task
    folder: Path
    spec: RunSpec
    """What a run of its tests stands on; its base is what an agent is given."""


def open_site(house: AppContext, task: Task, folder: Path) -> TaskFolder:
    """Lays the task out in `folder`, unless that was done before, and finds how its tests are run.

    Raises `ConfigError` where the task's repo, commit, tests or interpreter cannot be had.
    """
    if not _is_laid_out(folder):
        lay_out(house.trees, task, folder)
    ground = equip(house, take_ground(house, folder, python=task.python or None), None)
    suite = Suite(
        runner=ground.runner,
        command=ground.command,
        environment=keep_environment(house, ground.environment),
        folder=ground.folder,
    )
    limits = limits_of(task, ground.limits)
    return TaskFolder(
        task, folder, RunSpec(task=FixTask(), base=ground.base, suite=suite, sandbox=limits, repo=task.slug)
    )


def limits_of(task: Task, usual: SandboxLimits) -> SandboxLimits:
    """What one run of the task's tests may use."""
    return usual.model_copy(update={"wall": min(usual.wall, task.seconds)}) if task.seconds else usual


def lay_out(trees: GitTrees, task: Task, folder: Path) -> None:
    """Makes `folder` a git repo that holds what is given of the task, in one commit, with no reflog and no remote.

    It is there as a whole or not at all: a lay-out that was interrupted is done anew. Raises as `open_site` does.
    """
    given = given_snapshot(trees, task)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not _is_laid_out(folder):
        shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(prefix=".laying-", dir=folder.parent) as beside, trees.checkout(given) as made:
        fresh = Path(beside) / folder.name
        shutil.copytree(made, fresh, symlinks=True)
        git("-c", "core.logAllRefUpdates=false", "init", "-q", "--initial-branch=main", "--template=", str(fresh))
        git("add", "--all", "--force", cwd=fresh)
        tree = git("write-tree", cwd=fresh).decode().strip()
        # Dated alike each time, so that the same task is the same commit.
        commit = git(
            "hash-object", "-t", "commit", "-w", "--stdin", stdin=_COMMIT.format(tree=tree).encode(), cwd=fresh
        )
        git("-c", "core.logAllRefUpdates=false", "update-ref", "refs/heads/main", commit.decode().strip(), cwd=fresh)
        try:
            fresh.rename(folder)
        except OSError:
            # Another process that does the same evaluation was first: what it laid out is the same.
            if not _is_laid_out(folder):
                raise


def _is_laid_out(folder: Path) -> bool:
    return (folder / ".git").is_dir()


def given_snapshot(trees: GitTrees, task: Task) -> Snapshot:
    """The files that an agent is given. Raises `ConfigError` where the repo or the commit is not there."""
    base = task.base
    if not base.repo:
        return changed(trees, trees.empty(), base.change, f"{task.id}: its files")
    repo = Path(base.repo)
    if not repo.is_dir():
        raise ConfigError(f"{task.id}: there is no folder {repo}")
    start = _at_commit(trees, repo, base.commit, task.id) if base.commit else trees.take(repo)
    return changed(trees, start, base.change, f"{task.id}: its change")


def changed(trees: GitTrees, snapshot: Snapshot, change: TaskChange, what: str) -> Snapshot:
    """The snapshot with a change of a task. Raises `ConfigError`, naming `what`, where its diff does not apply."""
    made = snapshot
    if change.files:
        files = {path: None if text is None else text.encode() for path, text in change.files.items()}
        made = trees.write(made, files)
    if change.diff:
        applied = trees.apply(made, change.diff.encode())
        if isinstance(applied, DiffRefused):
            raise ConfigError(f"{what}: the diff does not apply: {applied.message}")
        made = applied
    return made


def _at_commit(trees: GitTrees, repo: Path, commit: str, name: str) -> Snapshot:
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        try:
            found = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", cwd=repo).decode().strip()
            place = Path(git("rev-parse", "--absolute-git-dir", cwd=repo).decode().strip())
            git("read-tree", "--reset", "-u", found, git_dir=place, work_tree=work, index=Path(scratch) / "index")
        except GitFailed as error:
            raise ConfigError(f"{name}: commit {commit} cannot be had from {repo}: {error}") from error
        # Staged, so that what is tracked counts although it is ignored.
        git("init", "-q", "--template=", str(work))
        git("add", "--all", "--force", cwd=work)
        return trees.take(work)
