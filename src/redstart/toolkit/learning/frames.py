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
    r"^\s+at (?:async )?(?:(?P<name>.+?) \()?(?:file://)?(?P<path>[^\s():]+\.[cm]?[jt]sx?):\d+(?::\d+)?\)?$"
)
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
    """Of the function; empty where it has no lasting one (a lambda, a comprehension)."""
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
    """`path:function` of the innermost frame in the repo's source; empty where there is none."""
    asked: str
    """What the test was at: its own line and, where it was in a helper of the tests, that line too."""


def tracebacks(detail: str) -> list[Traceback]:
    """One for each exception of a chain; the last is the one that reached the test. At least one, perhaps empty."""
    return [_traceback(part) for part in _CHAIN.split(_SECTION.split(detail, maxsplit=1)[0])]


def place(
    found: Sequence[Traceback], is_source: Callable[[str], bool], roots: Sequence[str], *, recursive: bool
) -> Place:
    """Of the exception that reached the test first, then of its causes. `recursive`: the innermost frame is chance."""
    source = ""
    for one in reversed(found):
        named = [
            f"{path}:{frame.name}"
            for frame in one.frames
            if frame.name and (path := local_path(frame.path, roots)) and is_source(path)
        ]
        if named:
            source = _recurring(named) if recursive else named[-1]
            break
    shown = (frame.line for frame in found[-1].frames if local_path(frame.path, roots))
    own = [line for line in shown if line and not _HEAD.match(line)]
    asked = " ".join(dict.fromkeys((own[0], own[-1]))) if own and not source else ""
    return Place(source, " ".join(asked.split()))


def local_path(path: str, roots: Sequence[str]) -> str:
    """A traceback's path relative to the repo; empty where it is not the repo's."""
    for root in longest_first(roots):
        if path.startswith(root + "/"):
            path = path[len(root) + 1 :]
            break
    path = normpath(path)
    return "" if path.startswith(("/", "..", "<")) or _FOREIGN.search(path) else path


def longest_first(roots: Sequence[str]) -> list[str]:
    return sorted((root.rstrip("/") for root in roots if root.rstrip("/")), key=lambda root: (-len(root), root))


def _recurring(named: Sequence[str]) -> str:
    """Of functions that call each other without end, always the same one, wherever the stack was full."""
    often = Counter(named)
    return min((name for name in often if often[name] > 1), default=named[-1])


def _traceback(text: str) -> Traceback:
    frames: list[Frame] = []
    shown = at = ""  # the function whose source pytest has shown since the last frame, and the line it marked
    inner: list[Frame] = []  # node shows the innermost first
    lines = [_GROUP.sub("  ", line) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if script := _SCRIPT_FRAME.match(line):
            inner.append(Frame(script["path"], _lasting(_script_name(script["name"] or ""))))
            continue
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
    """`Cart.add` of `Cart.add`, `Object.add [as sum]` or `new Cart`; the top of a file is `<module>`."""
    plain = name.partition(" [as ")[0].removeprefix("new ")
    return ".".join(part for part in plain.split(".") if part not in _RECEIVERS) or "<module>"


def _lasting(name: str) -> str:
    kept = [part for part in name.strip().split(".") if part != "<locals>"]
    if kept and kept[-1].startswith("<") and kept[-1] != "<module>":
        return ""
    return ".".join(kept)
