"""Tracebacks read: which functions of the repo stood in them, and which lines they were at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from posixpath import normpath
from typing import NamedTuple

_SECTION = re.compile(r"^-+ Captured .*", re.MULTILINE)
_CHAIN = re.compile(
    r"^(?:E\s+)?(?:The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\s*$",
    re.MULTILINE,
)
_GROUP = re.compile(r"^\s*(?:\+-+ \d+ -+|[+|]) ?")
"""The margin of the tracebacks in an exception group."""
_PYTEST_FRAME = re.compile(r"^(?P<path>[^\s:][^:\n]*\.py):\d+: ?(?:in (?P<name>.+)|[\w.]*)$")
_PYTHON_FRAME = re.compile(r'^(?:E\s)?\s*File "(?P<path>[^"\n]+)", line \d+(?:, in (?P<name>.+))?$')
_SCRIPT_FRAME = re.compile(
    r"^\s+at (?:async )?(?:(?P<name>\S.*?) \((?=.*\)$))?(?:file://)?(?P<path>[^\s():][^():]*\.[cm]?[jt]sx?):\d+(?::\d+)?\)?$"
)
_SCRIPT_HEAD = re.compile(r"^\s*(?:file://)?(?P<path>/[^():]+\.[cm]?[jt]sx?):\d+$")
"""What Node.js writes above a line that it could not read."""
_LONGEST = 2000
"""No frame stands in a longer line."""
_ENTRY_END = re.compile(r"^(?:_ )+_?\s*$")
_DEF = re.compile(r"^[>\s]*(?:async\s+)?def\s+(\w+)")
_AT = re.compile(r"^>\s+(\S.*)$")
_LINE = re.compile(r"^(?:E\s)?\s{4,}(?P<line>[^\s^~].*)$")
_HEAD = re.compile(r"@|(?:async )?def ")
"""Where a test is wrapped, as Hypothesis does, each Python has another line of its head for the place of the call."""
_FOREIGN = re.compile(r"(?:^|/)(?:site-packages|dist-packages|node_modules|lib/python3\.\d+)/")
_RECEIVERS = frozenset(("Object", "Module", "exports", "<anonymous>", "Function"))
"""What V8 writes before a function's name where it belongs to no class."""


class Frame(NamedTuple):
    path: str
    """As the traceback shows it."""
    name: str
    """Of the function; empty where it has no lasting one (a lambda, a comprehension, the top of a script)."""
    line: str = ""
    """The code it was at, where the traceback shows it."""


class Traceback(NamedTuple):
    """Of one exception, outermost frame first."""

    text: str
    frames: tuple[Frame, ...]
    script: bool
    """Whether it is one of Node.js."""


class Place(NamedTuple):
    """Where in the repo a failure is."""

    source: str
    """`path:function` of the innermost frame in the repo's source, `path:<module>` where it stands in no function that
    has a name; empty where there is no such frame."""
    asked: str
    """What the test was at: its own line and, where it was in a helper of the tests, that line too."""


def tracebacks(detail: str) -> list[Traceback]:
    """One for each exception of a chain; the last is the one that reached the test. At least one, perhaps empty."""
    return [_traceback(part) for part in _CHAIN.split(_SECTION.split(detail, maxsplit=1)[0])]


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
    shown = (frame.line for frame in found[-1].frames if view.local(frame.path))
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
        return "" if plain.startswith(("..", "<")) or _FOREIGN.search(plain) else plain


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


def _traceback(text: str) -> Traceback:
    frames: list[Frame] = []
    shown = at = ""  # the function whose source pytest has shown since the last frame, and the line it marked
    inner: list[Frame] = []  # node shows the innermost first
    lines = [_GROUP.sub("  ", line[:_LONGEST]) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if script := _SCRIPT_FRAME.match(line):
            inner.append(Frame(script["path"], _lasting(_script_name(script["name"] or ""))))
            continue
        if not inner and (head := _SCRIPT_HEAD.match(line)):
            inner.append(Frame(head["path"], ""))
        match = _PYTEST_FRAME.match(line) or _PYTHON_FRAME.match(line)
        if match is not None:
            name = match["name"] or ("<module>" if match.re is _PYTHON_FRAME else shown)
            below = _LINE.match(lines[number + 1]) if number + 1 < len(lines) and not at else None
            frames.append(Frame(match["path"], _lasting(name), at or (below["line"].strip() if below else "")))
            shown = at = ""
        elif _ENTRY_END.match(line):
            shown = at = ""
        elif marked := _AT.match(line):
            at = marked[1]
        elif not shown and (defined := _DEF.match(line)):
            shown = defined[1]
    return Traceback(text, (*frames, *inner[::-1]), script=bool(inner))


def _script_name(name: str) -> str:
    """`Cart.add` of `Cart.add`, `Object.add [as sum]` or `new Cart`; the top of a file has none."""
    plain = name.partition(" [as ")[0].removeprefix("new ")
    return ".".join(part for part in plain.split(".") if part not in _RECEIVERS)


def _lasting(name: str) -> str:
    kept = [part for part in name.strip().split(".") if part != "<locals>"]
    if kept and kept[-1].startswith("<") and kept[-1] != "<module>":
        return ""
    return ".".join(kept)
