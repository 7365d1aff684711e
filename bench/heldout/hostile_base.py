"""Hostile patches: answers that try to write where nothing may be written.

The workspace is the folder `ws` in a parent folder. `BASE` are its files, `LINKS` its symlinks, `EXECUTABLE` its
executable files and `OUTSIDE` the files beside it (paths from the parent). `build` makes all of it. The player adds
git. An answer may hold `PARENT`, which stands for the parent's absolute path: `Hostile.said` puts it in.

`forbidden` are globs from the parent: nothing that they match may be created, changed or deleted.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

PARENT = b"@PARENT@"

BASE: dict[str, bytes] = {
    "shop/__init__.py": b'"""A small shop."""\n',
    "shop/prices.py": b'"""Prices."""\n\n\ndef total(items):\n    """The sum."""\n    return sum(items) + 1\n',
    "tools/run.sh": b"#!/bin/sh\nexec true\n",
    "tests/test_prices.py": b"from shop.prices import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    "tests/conftest.py": b'"""Nothing is needed yet."""\n',
    "tests/data/one.txt": b"one\n",
    "README.md": b"# Shop\n",
}
"""The workspace's files."""

LINKS: dict[str, str] = {
    "out": "../outside",
    "notes.txt": "../outside/notes.txt",
    "shop/hooks": "../.git/hooks",
    "shop/cases": "../tests",
    "shop/late.txt": "../../escaped.txt",
}
"""The workspace's symlinks and what they point to; the last one points to nothing."""

EXECUTABLE: tuple[str, ...] = ("tools/run.sh",)

OUTSIDE: dict[str, bytes] = {"outside/notes.txt": b"notes\n", "outside/keep.py": b"kept = True\n"}
"""Files beside the workspace, from the parent."""

ESCAPES = ("escaped*", "outside/**")
GIT = ("ws/.git", "ws/.git/**", "ws/.GIT", "ws/.GIT/**", "ws/.Git/**", "ws/git~1/**")
TESTS = ("ws/tests/**", "ws/Tests/**", "ws/TESTS/**")


class Hostile(NamedTuple):
    """One hostile answer, and the paths that must stay as they are."""

    name: str
    group: str
    answer: bytes
    forbidden: tuple[str, ...]

    def render(self, parent: Path) -> bytes:
        """The answer for a workspace in this parent folder."""
        return self.answer.replace(PARENT, str(parent).encode())

    def forbids(self, path: str) -> bool:
        """Whether this path, from the parent, must stay as it is; `*` crosses folders."""
        return any(fnmatchcase(path, glob) for glob in self.forbidden)


def build(parent: Path) -> Path:
    """Make the workspace and what is beside it; gives the workspace."""
    workspace = parent / "ws"
    for top, files in ((workspace, BASE), (parent, OUTSIDE)):
        for path, content in files.items():
            place = top / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    for path, target in LINKS.items():
        (workspace / path).symlink_to(target)
    for path in EXECUTABLE:
        (workspace / path).chmod(0o755)
    return workspace


def block(path: bytes, new: bytes, old: bytes = b"") -> bytes:
    """A search/replace block; without old text it asks for a new file."""
    return path + b"\n<<<<<<< SEARCH\n" + old + b"=======\n" + new + b">>>>>>> REPLACE\n"


def whole(path: bytes, new: bytes) -> bytes:
    """A whole file."""
    return path + b"\n```\n" + new + b"```\n"


def envelope(*lines: bytes) -> bytes:
    """An apply_patch envelope."""
    return b"\n".join((b"*** Begin Patch", *lines, b"*** End Patch", b""))


def added(path: bytes, *lines: bytes, mode: bytes = b"100644", end: bool = True) -> bytes:
    """A unified diff with git's header for a new file."""
    tail = b"" if end else b"\n\\ No newline at end of file"
    head = b"diff --git a/%b b/%b\nnew file mode %b\n--- /dev/null\n+++ b/%b\n" % (path, path, mode, path)
    return head + b"@@ -0,0 +1,%d @@\n" % len(lines) + b"\n".join(b"+" + line for line in lines) + tail + b"\n"


def changed(path: bytes, old: bytes, new: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    """A unified diff that changes the only line `old` of a file."""
    head = b"--- %b\n+++ %b\n" % (before or b"a/" + path, after or b"b/" + path)
    return head + b"@@ -1 +1 @@\n-" + old + b"\n+" + new + b"\n"


BAD = b"escaped = True\n"
SUM = b"    return sum(items) + 1\n"
README = b"# Shop\n"
