"""Mine tasks from a git history: commits that change source and tests, whose tests fail before and pass after."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError
from redstart.evals.grading import Grader
from redstart.evals.task import Base, Task, TaskChange, TaskLanguage
from redstart.evals.task_repo import open_site
from redstart.evals.verify import REPEATS, TaskCheck, verify
from redstart.toolkit.base.git import GitFailed, run_git, split_z
from redstart.toolkit.languages.registry import is_parsable_code, is_test_path
from redstart.toolkit.patching.policy import Protection, find_protection

MOST_SOURCE, MOST_TESTS = 5, 8
"""Maximum numbers of files in a commit: a larger commit is seldom a single fix."""
SCANNED = 2000
"""Default number of commits to scan."""


class FixCandidate(NamedTuple):
    """A commit that may be a fix, with its parent."""

    base: str
    fix: str
    source: tuple[str, ...]
    tests: tuple[str, ...]


class MinedTask(NamedTuple):
    """A candidate as a task; `verified.ok` says whether `task` is kept."""

    task: Task
    verified: TaskCheck


def find_candidates(repo: Path, scanned: int = SCANNED) -> Iterator[FixCandidate]:
    """Find the commits of the current branch that change a few source files and tests, newest first, without merges.

    Raises `ConfigError` if the directory or its history does not exist.
    """
    if not repo.is_dir():
        raise ConfigError(f"{repo} is not a directory")
    try:
        commits = run_git("rev-list", "--no-merges", "--parents", f"--max-count={scanned}", "HEAD", cwd=repo).decode()
    except GitFailed as error:
        raise ConfigError(f"{repo} has no git history: {error}") from error
    for line in commits.splitlines():
        fix, *parents = line.split()
        if len(parents) == 1 and (candidate := _read_candidate(repo, parents[0], fix)):
            yield candidate


def read_candidates(file: Path, name: str) -> Iterator[FixCandidate]:
    """Read the candidates of project `name` from a JSON Lines file with rows of repo, base, fix, src and tests."""
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["repo"] == name:
            yield FixCandidate(row["base"], row["fix"], tuple(row["src"]), tuple(row["tests"]))


async def mine(
    app: AppContext,
    repo: Path,
    candidates: Iterable[FixCandidate],
    *,
    hide_tests: bool = False,
    python: str = "",
    repeats: int = REPEATS,
) -> AsyncIterator[MinedTask]:
    """Make a task of each candidate and check it by running it. Candidates with unreadable files are skipped.

    With `hide_tests`, the tests are only for grading, and the commit message is the goal. The repo stays unchanged.
    """
    grader = Grader(app)
    for candidate in candidates:
        task = make_task(repo, candidate, hide_tests=hide_tests, python=python)
        if task is not None:
            yield await check_candidate(app, grader, task, repeats)


async def check_candidate(app: AppContext, grader: Grader, task: Task, repeats: int = REPEATS) -> MinedTask:
    """Check the task of a candidate by running it, and set the tests that must pass."""
    with tempfile.TemporaryDirectory() as work:
        task_folder = open_site(app, task, Path(work) / task.slug)
        standard = await grader.get_baseline(task_folder)
        if standard.problem:
            return MinedTask(task, TaskCheck(task=task.id, digest=task.digest, ok=False, why=standard.problem))
        # Tests that failed before for other reasons still fail: require only those that the commit fixed.
        task = task.model_copy(update={"red": standard.targets})
        return MinedTask(task, await verify(grader, task_folder._replace(task=task), repeats))


def make_task(repo: Path, candidate: FixCandidate, *, hide_tests: bool = False, python: str = "") -> Task | None:
    """Make a task of the candidate without running it. None if a file is missing or not UTF-8."""
    try:
        tests = {path: _read_text(repo, candidate.fix, path) for path in candidate.tests}
        fixed = {path: _read_text(repo, candidate.fix, path) for path in candidate.source}
        message = run_git("log", "-1", "--format=%B", candidate.fix, cwd=repo).decode()
    except (GitFailed, UnicodeDecodeError):
        return None
    visible, hidden = (TaskChange(), TaskChange(files=tests)) if hide_tests else (TaskChange(files=tests), TaskChange())
    return Task(
        id=f"{repo.resolve().name}/{candidate.fix[:12]}",
        language=TaskLanguage.detect(candidate.source),
        base=Base(repo=str(repo.resolve()), commit=candidate.base, change=visible),
        goal=message.strip() if hide_tests else "",
        shows_red=not hide_tests,
        hidden=hidden,
        fix=TaskChange(files=fixed),
        tags=("mined",),
        python=python,
    )


def _read_candidate(repo: Path, base: str, fix: str) -> FixCandidate | None:
    names = split_z(run_git("diff-tree", "-r", "-z", "--name-only", "--no-renames", base, fix, cwd=repo))
    tests = tuple(path for path in names if is_test_path(path) or find_protection(path) is Protection.test)
    code = (path for path in names if path not in tests and is_parsable_code(path))
    source = tuple(path for path in code if not find_protection(path))
    if not (0 < len(source) <= MOST_SOURCE and 0 < len(tests) <= MOST_TESTS):
        return None
    return FixCandidate(base, fix, source, tests)


def _read_text(repo: Path, commit: str, path: str) -> str | None:
    """Read the file at that commit. None if the commit does not have it."""
    if not run_git("ls-tree", "-z", commit, "--", path, cwd=repo):
        return None
    return run_git("cat-file", "blob", f"{commit}:{path}", cwd=repo).decode()
