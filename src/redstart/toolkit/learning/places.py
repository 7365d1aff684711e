"""Where in the repo a failure is: which function of its source, and which line of its tests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from posixpath import normpath
from typing import NamedTuple

from redstart.toolkit.base.tracebacks import INSTALLED, Frame, Traceback

_HEAD = re.compile(r"@|(?:async )?def ")
"""Where a test is wrapped, as Hypothesis does, each Python has another line of its head for the place of the call."""


class Place(NamedTuple):
    """Where in the repo a failure is."""

    source: str
    """`path:function` of the innermost frame in the repo's source, `path:<module>` where it stands in no function that
    has a name; empty where there is no such frame."""
    asked: str
    """What the test was at: its own line and, where it was in a helper of the tests, that line too."""


def place(
    found: Sequence[Traceback], is_source: Callable[[str], bool], roots: Sequence[str], *, test: str, recursive: bool
) -> Place:
    """Of the exception that reached the test first, then of its causes. `test` is the file of the test, from the repo's
    root. `recursive`: the innermost frame is chance."""
    view = _view([frame for one in found for frame in one.frames], roots, test)
    source = ""
    for one in reversed(found):
        within = [(path, frame.name) for frame in one.frames if (path := view.local(frame.path)) and is_source(path)]
        if within:
            source = _recurring(within) if recursive else _innermost(within)
            break
    shown = (frame.code for frame in found[-1].frames if view.local(frame.path))
    own = [line for line in shown if line and not _HEAD.match(line)]
    asked = " ".join(dict.fromkeys((own[0], own[-1]))) if own and not source else ""
    return Place(source, " ".join(asked.split()))


class _View(NamedTuple):
    """How the folder in which the tests were begun shows the repo."""

    roots: Sequence[str]
    """Longest first."""
    before: str = ""
    """What stands before each path of the repo, where it was begun outside of it: `../copy/`."""
    within: str = ""
    """Where in the repo it was begun: `tests/`."""

    def local(self, path: str) -> str:
        """A traceback's path relative to the repo; empty where it is not the repo's."""
        plain = normpath(path)
        root = next((root for root in self.roots if plain.startswith(root + "/")), "")
        if root:
            plain = plain[len(root) + 1 :]
        elif plain.startswith("/") or (self.before and not plain.startswith(self.before)):
            return ""
        else:
            plain = normpath(self.within + plain[len(self.before) :])
            plain = _from_above(plain, self.roots) if plain.startswith("../") else plain
        return "" if plain.startswith(("..", "<")) or INSTALLED.search(plain) else plain


def _view(frames: Sequence[Frame], roots: Sequence[str], test: str) -> _View:
    """By the frame of the test's own file, which is known from the repo's root."""
    plain = _View(longest_first(roots))
    for path in (normpath(frame.path) for frame in frames):
        if path == test:
            return plain
        before = path.removesuffix(f"/{test}")
        if before != path and (before.startswith("../") or any(f"{root}/".endswith(f"/{before}/") for root in roots)):
            return plain._replace(before=before + "/")
        if not path.startswith(("/", "../")) and test.endswith(f"/{path}"):
            return plain._replace(within=test[: -len(path)])
    return plain


def _from_above(path: str, roots: Sequence[str]) -> str:
    """A path that climbs out of the folder where the tests were begun and comes down into the repo, from there on."""
    down = re.sub(r"^(?:\.\./)+", "", path)
    for root in roots:
        parts = root.strip("/").split("/")
        for first in range(len(parts)):
            if down.startswith(tail := f"{'/'.join(parts[first:])}/"):
                return down[len(tail) :]
    return path


def longest_first(roots: Sequence[str]) -> list[str]:
    return sorted((root.rstrip("/") for root in roots if root.rstrip("/")), key=lambda root: (-len(root), root))


def _innermost(within: Sequence[tuple[str, str]]) -> str:
    """What has no lasting name belongs to the function around it, as far as that stands in the traceback."""
    path = within[-1][0]
    around = (name for file, name in reversed(within) if file == path and name)
    return f"{path}:{next(around, '<module>')}"


def _recurring(within: Sequence[tuple[str, str]]) -> str:
    """Of functions that call each other without end, always the same one, wherever the stack was full."""
    often = Counter(f"{path}:{name}" for path, name in within if name)
    return min((name for name in often if often[name] > 1), default=_innermost(within))
