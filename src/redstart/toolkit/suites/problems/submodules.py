"""Recognize tests that fail because a git submodule is not checked out."""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable, Collection, Sequence
from posixpath import normpath

from redstart.core.report import Case
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, create_problem
from redstart.toolkit.suites.reading.exceptions import list_exceptions

KIND = "empty_submodule"

_MISSING_FILE = frozenset(("FileNotFoundError", "NotADirectoryError"))
_PATH = re.compile(r"""['"]([^'"\n]*/[^'"\n]*)['"]""")
_MODULE = re.compile(r"^No module named '([\w.]+)'")


def list_empty_submodules(
    paths: Collection[str], read: Callable[[str], bytes | None], copied: Sequence[str]
) -> tuple[str, ...]:
    """List the submodules without files. `paths` are the files of the repo, `copied` what workspaces have besides."""
    text = (read(".gitmodules") or b"").decode(errors="replace")
    config = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        config.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error:
        return ()
    folders = [normpath(config[section]["path"]) for section in config.sections() if config[section].get("path")]
    filled = (*paths, *copied)
    return tuple(
        folder for folder in folders if not any(path == folder or path.startswith(f"{folder}/") for path in filled)
    )


def find_missing_submodule(
    case: Case, submodules: Sequence[str], mount: str, folder: str = ""
) -> EnvironmentProblem | None:
    """Find the submodule whose files a failing test misses. The suite runs in `folder` of the repo at `mount`."""
    for exception in list_exceptions(case):
        if exception.type in _MISSING_FILE:
            found = (_find_submodule(path, submodules, mount, folder) for path in _PATH.findall(exception.text))
        elif exception.type == "ModuleNotFoundError" and (match := _MODULE.match(exception.text)):
            top = match[1].partition(".")[0]
            found = (submodule for submodule in submodules if submodule.rpartition("/")[2] == top)
        else:
            continue
        if submodule := next(filter(None, found), ""):
            return create_problem(KIND, f"the git submodule {submodule} is not checked out", _REMEDY)
    return None


_REMEDY = "run git submodule update --init, then redstart again"


def _find_submodule(path: str, submodules: Sequence[str], mount: str, folder: str) -> str:
    inside = path.removeprefix(f"{mount}/")
    candidates = {normpath(inside)} if inside != path or path.startswith("/") else {normpath(f"{folder or '.'}/{path}")}
    return next(
        (item for item in submodules for name in candidates if name == item or name.startswith(f"{item}/")),
        "",
    )
