"""Tracebacks of pytest, of Python itself and of Node.js, as values."""

from __future__ import annotations

import re
from collections.abc import Set
from posixpath import normpath
from typing import NamedTuple

INSTALLED = re.compile(r"(?:^|/)(?:site-packages|dist-packages|node_modules|lib/python3[^/]*)/")
"""A path of what is installed, not of the project."""

# pytest writes the escape character into its XML as the text `#x1B`
_ANSI = re.compile(r"(?:\x1b|#x1B)\[[0-?]*[ -/]*[@-~]")
_CAPTURED = re.compile(r"^-+ Captured .*", re.MULTILINE)
_CHAIN = re.compile(
    r"^(?:E\s+)?(The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\s*$",
    re.MULTILINE,
)
_GROUP = re.compile(r"^\s*(?:\+-+ \d+ -+|[+|]) ?")
"""The margin of the tracebacks in an exception group."""
_PYTEST_FRAME = re.compile(
    r"^(?P<path><[^>\n]+>|[^\s:>][^:\n]*\.py):(?P<line>\d+):(?: ?(?:in (?P<name>.+)|[\w.]*)$)?(?P<rest>.*)"
)
_PYTHON_FRAME = re.compile(r'^(?P<quoted>E\s)?\s*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_SCRIPT_FRAME = re.compile(
    r"^\s+at (?:async )?(?:(?P<name>\S.*?) \((?=.*\)$))?(?:file://)?(?P<path>[^\s():][^():]*\.[cm]?[jt]sx?)"
    r":(?P<line>\d+)(?::\d+)?\)?$"
)
_SCRIPT_HEAD = re.compile(r"^\s*(?:file://)?(?P<path>/[^():]+\.[cm]?[jt]sx?):(?P<line>\d+)$")
"""What Node.js writes above a line that it could not read."""
_LONGEST = 2000
"""No frame stands in a longer line."""
_ENTRY_END = re.compile(r"^(?:_ )+_?\s*$", re.MULTILINE)
_DEF = re.compile(r"^[>\s]*(?:async\s+)?def\s+(\w+)")
_AT = re.compile(r"^>\s+(\S.*)$")
_CODE = re.compile(r"^(?:E\s)?\s{4,}(?P<code>[^\s^~].*)$")
_RECEIVERS = frozenset(("Object", "Module", "exports", "<anonymous>", "Function"))
"""What V8 writes before a function's name where it belongs to no class."""


class Frame(NamedTuple):
    path: str
    """As the traceback shows it."""
    number: int
    """Of the line, from 1."""
    name: str = ""
    """Of the function; empty where it has no lasting one (a lambda, a comprehension, the top of a script)."""
    code: str = ""
    """The line itself, where the traceback shows it."""
    quoted: bool = False
    """Whether it stands in what the exception says."""
    unread: bool = False
    """Whether it is a place that Python could not read, and so did not run."""


class Traceback(NamedTuple):
    """Of one exception."""

    text: str
    frames: tuple[Frame, ...]
    """Outermost first."""
    mentions: tuple[Frame, ...]
    """The frames, and places with a message behind them, as pytest's shortest form of a traceback has them."""
    script: bool
    """Whether it is one of Node.js."""
    handling: bool
    """Whether it came up while the one before it was handled, without being raised `from` it."""

    @property
    def last_entry(self) -> str:
        """All that is shown of the innermost frame, arguments included."""
        return _ENTRY_END.split(self.text)[-1]

    @property
    def first_entry(self) -> str:
        return _ENTRY_END.split(self.text, maxsplit=1)[0]


def plain(text: str) -> str:
    """The text without colors, and with every line ended by a newline alone."""
    return _ANSI.sub("", text).replace("\r\n", "\n")


def tracebacks(detail: str) -> list[Traceback]:
    """One for each exception of a chain; the last is the one that reached the test. At least one, perhaps empty.

    What the test printed is not looked at.
    """
    first, *rest = _CHAIN.split(_CAPTURED.split(detail, maxsplit=1)[0])
    links = zip(rest[::2], rest[1::2], strict=True)
    return [_traceback(first, False), *(_traceback(text, link.startswith("During")) for link, text in links)]


def frames_within(detail: str, files: Set[str]) -> list[Frame]:
    """Every place in these files that tracebacks mention, outermost first, each with its path as `files` has it.

    An absolute path is taken for the file whose path it ends with.
    """
    mentioned = [frame for traceback in tracebacks(detail) for frame in traceback.mentions]
    found = [frame._replace(path=_among(frame.path, files)) for frame in mentioned]
    return [frame for frame in found if frame.path]


def _among(shown: str, files: Set[str]) -> str:
    path = normpath(shown)
    if path in files:
        return path
    if not path.startswith("/") or INSTALLED.search(path):
        return ""
    parts = path.split("/")
    return next((tail for start in range(1, len(parts)) if (tail := "/".join(parts[start:])) in files), "")


def _traceback(text: str, handling: bool) -> Traceback:
    frames: list[Frame] = []
    mentions: list[Frame] = []
    shown = at = ""  # the function whose source pytest has shown since the last frame, and the line it marked
    inner: list[Frame] = []  # Node.js shows the innermost first
    lines = [_GROUP.sub("  ", line[:_LONGEST]) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if script := _SCRIPT_FRAME.match(line):
            inner.append(Frame(script["path"], int(script["line"]), _lasting(_script_name(script["name"] or ""))))
            continue
        if not inner and (head := _SCRIPT_HEAD.match(line)):
            inner.append(Frame(head["path"], int(head["line"])))
        python = _PYTHON_FRAME.match(line)
        match = python or _PYTEST_FRAME.match(line)
        if match is not None and not python and match["rest"]:
            mentions.append(Frame(match["path"], int(match["line"])))
        elif match is not None:
            below = _CODE.match(lines[number + 1]) if number + 1 < len(lines) and not at else None
            frame = Frame(
                match["path"],
                int(match["line"]),
                _lasting(match["name"] or ("<module>" if python else shown)),
                at or (below["code"].strip() if below else ""),
                quoted=bool(python and python["quoted"]),
                unread=bool(python and not python["name"]),
            )
            frames.append(frame)
            mentions.append(frame)
            shown = at = ""
        elif _ENTRY_END.match(line):
            shown = at = ""
        elif marked := _AT.match(line):
            at = marked[1]
        elif not shown and (defined := _DEF.match(line)):
            shown = defined[1]
    outermost_first = inner[::-1]
    return Traceback(text, (*frames, *outermost_first), (*mentions, *outermost_first), bool(inner), handling)


def _script_name(name: str) -> str:
    """`Cart.add` of `Cart.add`, `Object.add [as sum]` or `new Cart`; the top of a file has none."""
    plain_name = name.partition(" [as ")[0].removeprefix("new ")
    return ".".join(part for part in plain_name.split(".") if part not in _RECEIVERS)


def _lasting(name: str) -> str:
    kept = [part for part in name.strip().split(".") if part != "<locals>"]
    if kept and kept[-1].startswith("<") and kept[-1] != "<module>":
        return ""
    return ".".join(kept)
