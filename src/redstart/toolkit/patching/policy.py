"""What a patch may not touch. Judged on the resulting tree, never on the patch's text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase as fnmatch

from redstart.core.change import Reject
from redstart.ports.store.port import TreeChange

MAX_DIFF_BYTES = 200_000

_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?)\.pyi?$")
_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|testing_data|__snapshots__)/")
_TEST_CONFIGURATION = frozenset(
    (
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.ini",
        "setup.cfg",
        "pyproject.toml",
        "noxfile.py",
        ".coveragerc",
        ".gitlab-ci.yml",
        ".travis.yml",
    )
)
_RUNS_AT_START = re.compile(r"(?:^|/)(?:sitecustomize|usercustomize)(?:\.py|/)|\.pth$")
_SHADOWS = re.compile(r"^(?:src/)?(?:pytest|_pytest|unittest|pluggy)(?:\.py|/)")
_REGULAR = ("100644", "100755", "000000")


def protected(path: str, globs: Sequence[str] = ()) -> str:
    """Why this path is not the patch's to change; empty where it is. `globs` are the user's, besides our own."""
    plain = path.casefold()
    name = plain.rpartition("/")[2]
    if any(fnmatch(plain, glob.casefold()) for glob in globs):
        return "your settings protect it"
    if _TEST_FILE.search(plain) or _TEST_FOLDER.search(plain):
        return "it is a test: the code is to be fixed, not the test"
    if name in _TEST_CONFIGURATION or plain.startswith(".github/"):
        return "it can change what the tests are or how they run"
    if _RUNS_AT_START.search(plain):
        return "it would run at every start of Python"
    if _SHADOWS.search(plain):
        return "it would stand in for the test runner"
    return ""


def violations(changes: Sequence[TreeChange], diff_bytes: int, globs: Sequence[str] = ()) -> tuple[Reject, ...]:
    """What is wrong with a change of the tree; empty where it may be tested."""
    found = [Reject(path=change.path, reason=reason) for change in changes if (reason := _violation(change, globs))]
    if diff_bytes > MAX_DIFF_BYTES:
        found.append(Reject(path="diff", reason=f"it is larger than {MAX_DIFF_BYTES // 1000} KB"))
    return tuple(found)


def _violation(change: TreeChange, globs: Sequence[str]) -> str:
    if change.new_mode not in _REGULAR:
        return f"it would become no regular file (mode {change.new_mode})"
    return protected(change.path, globs)
