"""Load tasks: the public sets by name, a directory of repos, or a file of tasks, also in SWE-bench format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from redstart.core.errors import ConfigError
from redstart.evals import public
from redstart.evals.task import Base, Task, TaskChange, read_tasks

Row = dict[str, Any]

PUBLIC: Mapping[str, tuple[str, Callable[[Row, Path], Task]]] = {
    "quixbugs": ("quixbugs_py.jsonl", public.quixbugs),
    "humanevalfix_py": ("humanevalfix_py.jsonl", public.humanevalfix_py),
    "humanevalfix_js": ("humanevalfix_js.jsonl", public.humanevalfix_js),
    "humaneval": ("humaneval.jsonl", public.humaneval),
    "mbpp": ("mbpp_sanitized.jsonl", public.mbpp),
    "exercism": ("exercism_python.jsonl", public.exercism),
}
"""The public sets by name: the file in the data directory, and the function that makes a task of a row."""


def load_set(source: str, *, data: Path | None = None, repos: Path | None = None) -> list[Task]:
    """Load the tasks of a public set, a JSON Lines file or a directory, in their order.

    `data` is the directory of the public sets; `repos` has the clones for rows in SWE-bench format, as `owner__name` or
    `owner/name`. Raises `ConfigError` if the set does not exist, cannot be read, or has a task twice.
    """
    path = Path(source)
    if source in PUBLIC:
        tasks = _public(source, data)
    elif path.is_file():
        tasks = _file(path, repos)
    elif path.is_dir():
        tasks = folder_of_repos(path)
    else:
        known = ", ".join(sorted(PUBLIC))
        raise ConfigError(f"unknown set {source}", remedy=f"give one of {known}, a file of tasks or a directory")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise ConfigError(f"{source} has two tasks with the ID {task.id}")
        seen.add(task.id)
    return tasks


def folder_of_repos(folder: Path) -> list[Task]:
    """Make one task for each subdirectory with files; for a git repo, one task for the directory itself.

    The true fix is not known, so grading checks whether the failing tests pass and nothing else got worse.
    """
    every = [folder] if (folder / ".git").exists() else sorted(path for path in folder.iterdir() if path.is_dir())
    repos = [item for item in every if not item.name.startswith(".") and any(item.iterdir())]
    if not repos:
        raise ConfigError(f"{folder} contains no repo")
    return [Task(id=item.resolve().name, base=Base(repo=str(item.resolve())), tags=("repo",)) for item in repos]


def _public(name: str, data: Path | None) -> list[Task]:
    file, make = PUBLIC[name]
    if data is None or not (data / file).is_file():
        raise ConfigError(
            f"the set {name} is not available",
            remedy=f"set REDSTART_DATA to a directory with {file}; docs/benchmarks.md lists its source",
        )
    return [make(row, data) for row in _rows(data / file)]


def _file(path: Path, repos: Path | None) -> list[Task]:
    rows = _rows(path)
    if rows and "instance_id" in rows[0]:
        return [swe_task(row, repos) for row in rows]
    return read_tasks(path.read_text(encoding="utf-8"), str(path))


def _rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ConfigError(f"{path}, line {number}, is not JSON") from error
    return rows


def swe_task(row: Row, repos: Path | None) -> Task:
    """Make a task of a row in SWE-bench format: the issue text is the goal, and the tests are hidden.

    Raises `ConfigError` if a field is missing or the clone of the repo does not exist.
    """
    try:
        repo, commit, name = str(row["repo"]), str(row["base_commit"]), str(row["instance_id"])
        test_patch, problem = str(row["test_patch"]), str(row["problem_statement"])
    except KeyError as error:
        raise ConfigError(f"a row has no {error.args[0]}", remedy="give rows the fields of SWE-bench") from error
    places = [repos / repo.replace("/", "__"), repos / repo] if repos else []
    clone = next((place for place in places if place.is_dir()), None)
    if clone is None:
        raise ConfigError(f"no clone of {repo} found", remedy="give the directory of the clones with --repos")
    return Task(
        id=name,
        base=Base(repo=str(clone.resolve()), commit=commit),
        goal=problem,
        shows_red=False,
        red=_listed(row.get("FAIL_TO_PASS")),
        hidden=TaskChange(diff=test_patch),
        fix=TaskChange(diff=str(row.get("patch", ""))),
        tags=("swe", repo),
    )


def _listed(given: Any) -> tuple[str, ...]:
    """Parse test IDs. SWE-bench stores lists as JSON in a string; other sources as a list."""
    return tuple(json.loads(given) if isinstance(given, str) and given else given or ())
