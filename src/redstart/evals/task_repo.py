"""Lay out a task so that its solution is out of reach: a fresh git repo with one commit, without the hidden tests.

No history of the source is copied. Everything there runs in the sandbox, which has no network and sees no directory
beside the repo.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from redstart.app.runs import keep_environment
from redstart.app.wire import AppContext
from redstart.app.workspace import equip, prepare_run_setup
from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.run import RunSpec, Suite
from redstart.core.shell import Environment, SandboxLimits
from redstart.core.tasks import FixTask
from redstart.evals.task import Task, TaskChange
from redstart.ports.store.port.trees import DiffRefused
from redstart.toolkit.base.git import GitFailed, run_git
from redstart.toolkit.repo.trees import GitTrees

_COMMIT = """tree {tree}
author task <task@localhost> 946684800 +0000
committer task <task@localhost> 946684800 +0000

The task as it is given
"""


class TaskFolder(NamedTuple):
    """A task that is laid out in a directory."""

    task: Task
    folder: Path
    spec: RunSpec
    """The specification of a run of its tests. Its base is the code that an agent is given."""


def open_site(app: AppContext, task: Task, folder: Path) -> TaskFolder:
    """Lay out the task in `folder`, unless that is already done, and detect how to run its tests.

    Raises `ConfigError` if the task's repo, commit, tests or interpreter are not available.
    """
    if not _is_laid_out(folder):
        lay_out(app.trees, task, folder)
    workspace = equip(app, prepare_run_setup(app, folder, python=task.python or None), None)
    environment = _hide_source(workspace.environment, task.base.repo)
    suite = Suite(
        runner=workspace.runner,
        command=workspace.command,
        environment=keep_environment(app, environment),
        folder=workspace.folder,
        detailed=True,
    )
    limits = get_limits(task, workspace.limits)
    return TaskFolder(
        task, folder, RunSpec(task=FixTask(), base=workspace.base, suite=suite, sandbox=limits, repo=task.slug)
    )


def _hide_source(environment: Environment, repo: str) -> Environment:
    """Return the environment without the files of the repo that the task was made from.

    An interpreter often imports a project from its repo (an editable install), which has the fix. The task's files then
    take the place of that repo.
    """
    inside = [path for path in environment.read_only if repo and Path(path).is_relative_to(repo)]
    if not inside:
        return environment
    prefix = environment.variables.get("VIRTUAL_ENV", "")
    hidden = {path for path in inside if not (prefix and Path(path).is_relative_to(prefix))}
    read_only = tuple(path for path in environment.read_only if path not in hidden)
    return environment.model_copy(update={"mount": repo, "read_only": read_only, "copies": ()})


def get_limits(task: Task, defaults: SandboxLimits) -> SandboxLimits:
    """Return the limits for one run of the task's tests."""
    return defaults.model_copy(update={"wall": min(defaults.wall, task.seconds)}) if task.seconds else defaults


def lay_out(trees: GitTrees, task: Task, folder: Path) -> None:
    """Make `folder` a git repo with the given files of the task, in one commit, without reflog and remote.

    The layout is atomic: an interrupted one is redone. Raises as `open_site` does.
    """
    snapshot = get_initial_snapshot(trees, task)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if folder.exists() and not _is_laid_out(folder):
        shutil.rmtree(folder)
    with (
        tempfile.TemporaryDirectory(prefix=".laying-", dir=folder.parent) as scratch,
        trees.checkout(snapshot) as source,
    ):
        new_folder = Path(scratch) / folder.name
        shutil.copytree(source, new_folder, symlinks=True)
        run_git(
            "-c", "core.logAllRefUpdates=false", "init", "-q", "--initial-branch=main", "--template=", str(new_folder)
        )
        run_git("add", "--all", "--force", cwd=new_folder)
        tree = run_git("write-tree", cwd=new_folder).decode().strip()
        # Use a fixed date, so that the same task is always the same commit.
        commit = run_git(
            "hash-object", "-t", "commit", "-w", "--stdin", stdin=_COMMIT.format(tree=tree).encode(), cwd=new_folder
        )
        run_git(
            "-c",
            "core.logAllRefUpdates=false",
            "update-ref",
            "refs/heads/main",
            commit.decode().strip(),
            cwd=new_folder,
        )
        try:
            new_folder.rename(folder)
        except OSError:
            # Another process with the same evaluation was first. Its layout is the same.
            if not _is_laid_out(folder):
                raise


def _is_laid_out(folder: Path) -> bool:
    return (folder / ".git").is_dir()


def get_initial_snapshot(trees: GitTrees, task: Task) -> Snapshot:
    """Return the files that an agent is given. Raises `ConfigError` if the repo or the commit does not exist."""
    base = task.base
    if not base.repo:
        return apply_change(trees, trees.create_empty(), base.change, f"{task.id}: its files")
    repo = Path(base.repo)
    if not repo.is_dir():
        raise ConfigError(f"{task.id}: the directory {repo} does not exist")
    start = _take_commit_snapshot(trees, repo, base.commit, task.id) if base.commit else trees.take(repo)
    return apply_change(trees, start, base.change, f"{task.id}: its change")


def apply_change(trees: GitTrees, snapshot: Snapshot, change: TaskChange, label: str) -> Snapshot:
    """Apply a change of a task to the snapshot. Raises `ConfigError`, naming `label`, if its diff does not apply."""
    result = snapshot
    if change.files:
        files = {path: None if text is None else text.encode() for path, text in change.files.items()}
        result = trees.write(result, files)
    if change.diff:
        applied = trees.apply(result, change.diff.encode())
        if isinstance(applied, DiffRefused):
            raise ConfigError(f"{label}: the diff does not apply: {applied.message}")
        result = applied
    return result


def _take_commit_snapshot(trees: GitTrees, repo: Path, commit: str, name: str) -> Snapshot:
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        try:
            commit_id = run_git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", cwd=repo).decode().strip()
            place = Path(run_git("rev-parse", "--absolute-git-dir", cwd=repo).decode().strip())
            run_git(
                "read-tree", "--reset", "-u", commit_id, git_dir=place, work_tree=work, index=Path(scratch) / "index"
            )
        except GitFailed as error:
            raise ConfigError(f"{name}: commit {commit} cannot be read from {repo}: {error}") from error
        # Stage all files, so that tracked files count even if they are ignored.
        run_git("init", "-q", "--template=", str(work))
        run_git("add", "--all", "--force", cwd=work)
        return trees.take(work)
