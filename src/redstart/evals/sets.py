"""Where tasks come from: the public sets by name, a folder of repos, a file of tasks or of SWE-bench's kind."""

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
"""By name: the file in the folder of evaluation data, and what makes a task of a row."""


def load_set(source: str, *, data: Path | None = None, repos: Path | None = None) -> list[Task]:
    """The tasks of a public set, of a file in JSON Lines or of a folder, in their order.

    `data` is the folder of the public sets, `repos` one with clones for rows of SWE-bench's kind, as `owner__name` or
    `owner/name`. Raises `ConfigError` where there is no such set, where it cannot be read, or names a task twice.
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
        raise ConfigError(f"there is no set {source}", remedy=f"name one of {known}, a file of tasks or a folder")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise ConfigError(f"{source} has two tasks {task.id}")
        seen.add(task.id)
    return tasks


def folder_of_repos(folder: Path) -> list[Task]:
    """One task for each folder in it that holds files; for a git repo, the folder itself.

    The true fix is not known: what is graded is whether the red tests became green and nothing else got worse.
    """
    every = [folder] if (folder / ".git").exists() else sorted(path for path in folder.iterdir() if path.is_dir())
    repos = [item for item in every if not item.name.startswith(".") and any(item.iterdir())]
    if not repos:
        raise ConfigError(f"{folder} holds no repo")
    return [Task(id=item.resolve().name, base=Base(repo=str(item.resolve())), tags=("repo",)) for item in repos]


def _public(name: str, data: Path | None) -> list[Task]:
    file, make = PUBLIC[name]
    if data is None or not (data / file).is_file():
        raise ConfigError(
            f"the set {name} is not there",
            remedy=f"let REDSTART_DATA name a folder with {file}: docs/benchmarks.md says where it comes from",
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
                raise ConfigError(f"{path}, line {number}, is no JSON") from error
    return rows


def swe_task(row: Row, repos: Path | None) -> Task:
    """A row of SWE-bench's kind: the issue's text is the goal, and the tests are hidden.

    Raises `ConfigError` where a field is missing or the repo's clone is not there.
    """
    try:
        repo, commit, name = str(row["repo"]), str(row["base_commit"]), str(row["instance_id"])
        test_patch, problem = str(row["test_patch"]), str(row["problem_statement"])
    except KeyError as error:
        raise ConfigError(f"a row lacks {error.args[0]}", remedy="a row needs what SWE-bench's rows have") from error
    places = [repos / repo.replace("/", "__"), repos / repo] if repos else []
    clone = next((place for place in places if place.is_dir()), None)
    if clone is None:
        raise ConfigError(f"there is no clone of {repo}", remedy="name the folder of the clones with --repos")
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
    """SWE-bench keeps lists of test ids as JSON in a string; others as a list."""
    return tuple(json.loads(given) if isinstance(given, str) and given else given or ())
