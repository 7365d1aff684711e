"""Prove that the tests import the workspace, not a copy of the project that our edits would not reach.

In the process that runs the tests, a small file of ours records where each package of the project comes from.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from posixpath import normpath, relpath
from typing import NamedTuple

from pydantic import ValidationError

from redstart.core.frozen import FrozenValue
from redstart.core.shell import IN, OUT, Completed, Environment
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file

PLUGIN = "redstart_sentinel"
NAMES = "sentinel.txt"
REPORT = "sentinel.json"
VARIABLE = "REDSTART_SENTINEL"


class Sentinel(NamedTuple):
    inside: tuple[str, ...] = ()
    outside_modules: tuple[tuple[str, str], ...] = ()
    """Pairs of a name and the path that it comes from."""
    missing_modules: tuple[str, ...] = ()

    @property
    def fault(self) -> str:
        """A sentence that says why the results do not apply to the workspace; empty if they do."""
        if not self.outside_modules:
            return ""
        first_name, path = self.outside_modules[0]
        suffix = f" (and {len(self.outside_modules) - 1} more)" if len(self.outside_modules) > 1 else ""
        return (
            f"The tests import {first_name}{suffix} from {path}, not from this folder: no edit here would reach them."
        )

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if not self.outside_modules:
            return ""
        parts = PurePosixPath(self.outside_modules[0][1]).parts
        if "site-packages" in parts or "dist-packages" in parts:
            return "A copy of the project is installed. Install it in place of that: pip install -e ."
        if "build" in parts or "dist" in parts:
            return "That is a built copy. Remove it, or take it from the path that the tests import from."
        if self.outside_modules[0][1].endswith((".so", ".pyd")):
            return "That is a compiled module. Remove it, so that the Python source beside it is imported."
        return (
            "Another checkout is installed in this environment, or the tests' configuration puts it on Python's path. "
            "Install this one: pip install -e ."
        )


class _Report(FrozenValue):
    root: str
    packages: dict[str, tuple[str, ...] | None]


def with_sentinel(request: SuiteRequest, packages: Sequence[str], environment: Environment) -> SuiteRequest:
    """Return the same request, extended to report where these packages come from."""
    existing_path = request.variables.get("PYTHONPATH") or environment.variables.get("PYTHONPATH", "")
    # Last on the path, so that it changes the origin of no import.
    path = ":".join(filter(None, (existing_path, IN)))
    return request._replace(
        variables={**request.variables, VARIABLE: f"{OUT}/{REPORT}", "PYTHONPATH": path},
        files_in={
            **request.files_in,
            f"{PLUGIN}.py": read_sandbox_file(f"{PLUGIN}.py"),
            NAMES: "".join(f"{name}\n" for name in packages),
        },
        collect=(*request.collect, REPORT),
    )


def read_sentinel(completed: Completed, environment: Environment, folder: str = "") -> Sentinel | None:
    """Read what a run in that directory of the workspace reports about its imports.

    None if it left no report, for example because it never collected its tests.
    """
    try:
        report = _Report.model_validate(json.loads(completed.files.get(REPORT, "")))
    except (ValueError, ValidationError):
        return None
    workspace = normpath(PurePosixPath(report.root, relpath(".", folder or ".")))
    inside: list[str] = []
    elsewhere: list[tuple[str, str]] = []
    for name, paths in report.packages.items():
        if not paths:
            continue
        if any(_is_edited(path, workspace, environment) for path in paths):
            inside.append(name)
        else:
            elsewhere.append((name, paths[0]))
    missing = tuple(name for name, paths in report.packages.items() if not paths)
    return Sentinel(tuple(inside), tuple(elsewhere), missing)


def _is_edited(path: str, root: str, environment: Environment) -> bool:
    """Whether an edit can change this path: it is in the workspace and was not added there besides the snapshot."""
    pure = PurePosixPath(path)
    if not pure.is_relative_to(root) or any(pure.is_relative_to(item) for item in environment.read_only):
        return False
    return not any(pure.is_relative_to(PurePosixPath(root, copy)) for copy in environment.copies)
