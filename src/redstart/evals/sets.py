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
    "quixbugs": ("quixbugs_py.jsonl", public.make_quixbugs_task),
    "humanevalfix_py": ("humanevalfix_py.jsonl", public.make_humanevalfix_py_task),
    "humanevalfix_js": ("humanevalfix_js.jsonl", public.make_humanevalfix_js_task),
    "humaneval": ("humaneval.jsonl", public.make_humaneval_task),
    "mbpp": ("mbpp_sanitized.jsonl", public.make_mbpp_task),
    "exercism": ("exercism_python.jsonl", public.make_exercism_task),
}
"""The public sets by name: the file in the data directory, and the function that makes a task of a row."""


def load_set(source: str, *, data: Path | None = None, repos: Path | None = None) -> list[Task]:
    """Load the tasks of a public set, a JSON Lines file or a directory, in their order.

    `data` is the directory of the public sets; `repos` has the clones for rows in SWE-bench format, as `owner__name` or
    `owner/name`. Raises `ConfigError` if the set does not exist, cannot be read, or has a task twice.
    """
    path = Path(source)
    if source in PUBLIC:
        tasks = _load_public_set(source, data)
    elif path.is_file():
        tasks = _load_file(path, repos)
    elif path.is_dir():
        tasks = load_repo_tasks(path)
    else:
        names = ", ".join(sorted(PUBLIC))
        raise ConfigError(f"there is no set '{source}'", remedy=f"give one of {names}, a file of tasks or a directory")
    seen_ids: set[str] = set()
    for task in tasks:
        if task.id in seen_ids:
            raise ConfigError(f"{source} has two tasks with the ID {task.id}")
        seen_ids.add(task.id)
    return tasks


def load_repo_tasks(folder: Path) -> list[Task]:
    """Make one task for each subdirectory with files; for a git repo, one task for the directory itself.

    The true fix is not known, so grading checks whether the failing tests pass and nothing else got worse.
    """
    directories = [folder] if (folder / ".git").exists() else sorted(path for path in folder.iterdir() if path.is_dir())
    repos = [item for item in directories if not item.name.startswith(".") and any(item.iterdir())]
    if not repos:
        raise ConfigError(f"{folder} contains no repo")
    return [Task(id=item.resolve().name, base=Base(repo=str(item.resolve())), tags=("repo",)) for item in repos]


def _load_public_set(name: str, data: Path | None) -> list[Task]:
    file, make = PUBLIC[name]
    if data is None or not (data / file).is_file():
        raise ConfigError(
            f"the set {name} is not available",
            remedy=f"set REDSTART_DATA to a directory with {file}; docs/benchmarks.md lists its source",
        )
    return [make(row, data) for row in _read_rows(data / file)]


def _load_file(path: Path, repos: Path | None) -> list[Task]:
    rows = _read_rows(path)
    if rows and "instance_id" in rows[0]:
        return [make_swe_task(row, repos) for row in rows]
    return read_tasks(path.read_text(encoding="utf-8"), str(path))


def _read_rows(path: Path) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise ConfigError(f"{path}, line {number}, is not JSON") from error
    return rows


def make_swe_task(row: Row, repos: Path | None) -> Task:
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
        red=_parse_test_ids(row.get("FAIL_TO_PASS")),
        hidden=TaskChange(diff=test_patch),
        fix=TaskChange(diff=str(row.get("patch", ""))),
        tags=("swe", repo),
    )


def _parse_test_ids(value: Any) -> tuple[str, ...]:
    """Parse test IDs. SWE-bench stores lists as JSON in a string; other sources as a list."""
    return tuple(json.loads(value) if isinstance(value, str) and value else value or ())
