"""Parse tracebacks of pytest, Python and Node.js."""

from __future__ import annotations

import re
from collections.abc import Set
from posixpath import normpath
from typing import NamedTuple

INSTALLED_PATH = re.compile(r"(?:^|/)(?:site-packages|dist-packages|node_modules|lib/python3[^/]*)/")
"""Matches the path of an installed file, which does not belong to the project."""

# pytest writes the escape character into its XML as the text `#x1B`.
_ANSI = re.compile(r"(?:\x1b|#x1B)\[[0-?]*[ -/]*[@-~]")
_CAPTURED = re.compile(r"^-+ Captured .*", re.MULTILINE)
_CHAIN = re.compile(
    r"^(?:E\s+)?(The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:)\s*$",
    re.MULTILINE,
)
_GROUP = re.compile(r"^\s*(?:\+-+ \d+ -+|[+|]) ?")
"""Margin of the tracebacks in an exception group."""
_PYTEST_FRAME = re.compile(
    r"^(?P<path><[^>\n]+>|[^\s:>][^:\n]*\.py):(?P<line>\d+):(?: ?(?:in (?P<name>.+)|[\w.]*)$)?(?P<rest>.*)"
)
_PYTHON_FRAME = re.compile(r'^(?P<quoted>E\s)?\s*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
_SCRIPT_FRAME = re.compile(
    r"^\s+at (?:async )?(?:(?P<name>\S.*?) \((?=.*\)$))?(?:file://)?(?P<path>[^\s():][^():]*\.[cm]?[jt]sx?)"
    r":(?P<line>\d+)(?::\d+)?\)?$"
)
_SCRIPT_HEAD = re.compile(r"^\s*(?:file://)?(?P<path>/[^():]+\.[cm]?[jt]sx?):(?P<line>\d+)$")
"""What Node.js writes above a line that it could not parse."""
_LONGEST = 2000
"""Maximum characters of a line with a frame."""
_ENTRY_END = re.compile(r"^(?:_ )+_?\s*$", re.MULTILINE)
_DEF = re.compile(r"^[>\s]*(?:async\s+)?def\s+(\w+)")
_MARKED_LINE = re.compile(r"^>\s+(\S.*)$")
_CODE = re.compile(r"^(?:E\s)?\s{4,}(?P<code>[^\s^~].*)$")
_RECEIVERS = frozenset(("Object", "Module", "exports", "<anonymous>", "Function"))
"""What V8 writes before the name of a function that belongs to no class."""


class Frame(NamedTuple):
    path: str
    """The path as the traceback shows it."""
    number: int
    """Line number, from 1."""
    name: str = ""
    """Name of the function; empty if it has no stable name (a lambda, a comprehension, the top of a script)."""
    code: str = ""
    """The line itself, if the traceback shows it."""
    is_quoted: bool = False
    """Whether the frame is part of the exception's message."""
    is_unparsed: bool = False
    """Whether Python could not parse this place, and so did not run it."""


class Traceback(NamedTuple):
    """The traceback of one exception."""

    text: str
    frames: tuple[Frame, ...]
    """The frames, outermost first."""
    mentions: tuple[Frame, ...]
    """The frames, and places followed by a message, as in pytest's shortest traceback style."""
    script: bool
    """Whether the traceback comes from Node.js."""
    handling: bool
    """Whether the exception occurred while the previous one was handled, without being raised `from` it."""

    @property
    def last_entry(self) -> str:
        """The full text of the innermost frame, including arguments."""
        return _ENTRY_END.split(self.text)[-1]

    @property
    def first_entry(self) -> str:
        return _ENTRY_END.split(self.text, maxsplit=1)[0]


def strip_colors(text: str) -> str:
    """Remove colors, and end every line with a plain newline."""
    return _ANSI.sub("", text).replace("\r\n", "\n")


def parse_tracebacks(detail: str) -> list[Traceback]:
    """Parse one traceback per exception of a chain; the last one reached the test. At least one, maybe empty.

    Captured output of the test is ignored.
    """
    first, *rest = _CHAIN.split(_CAPTURED.split(detail, maxsplit=1)[0])
    links = zip(rest[::2], rest[1::2], strict=True)
    return [
        _parse_traceback(first, False),
        *(_parse_traceback(text, link.startswith("During")) for link, text in links),
    ]


def find_frames(detail: str, files: Set[str]) -> list[Frame]:
    """Find every place in these files that tracebacks mention, outermost first, each with its path from `files`.

    An absolute path matches the file whose path it ends with.
    """
    mentions = [frame for traceback in parse_tracebacks(detail) for frame in traceback.mentions]
    frames = [frame._replace(path=_match_file(frame.path, files)) for frame in mentions]
    return [frame for frame in frames if frame.path]


def _match_file(shown_path: str, files: Set[str]) -> str:
    path = normpath(shown_path)
    if path in files:
        return path
    if not path.startswith("/") or INSTALLED_PATH.search(path):
        return ""
    parts = path.split("/")
    return next((suffix for start in range(1, len(parts)) if (suffix := "/".join(parts[start:])) in files), "")


def _parse_traceback(text: str, handling: bool) -> Traceback:
    frames: list[Frame] = []
    mentions: list[Frame] = []
    function = marked_line = (
        ""  # the function whose source pytest has shown since the last frame, and the line it marked
    )
    script_frames: list[Frame] = []  # Node.js shows the innermost first
    lines = [_GROUP.sub("  ", line[:_LONGEST]) for line in text.splitlines()]
    for number, line in enumerate(lines):
        if script := _SCRIPT_FRAME.match(line):
            script_frames.append(
                Frame(script["path"], int(script["line"]), _get_stable_name(_clean_script_name(script["name"] or "")))
            )
            continue
        if not script_frames and (head := _SCRIPT_HEAD.match(line)):
            script_frames.append(Frame(head["path"], int(head["line"])))
        python = _PYTHON_FRAME.match(line)
        match = python or _PYTEST_FRAME.match(line)
        if match is not None and not python and match["rest"]:
            mentions.append(Frame(match["path"], int(match["line"])))
        elif match is not None:
            code_match = _CODE.match(lines[number + 1]) if number + 1 < len(lines) and not marked_line else None
            frame = Frame(
                match["path"],
                int(match["line"]),
                _get_stable_name(match["name"] or ("<module>" if python else function)),
                marked_line or (code_match["code"].strip() if code_match else ""),
                is_quoted=bool(python and python["quoted"]),
                is_unparsed=bool(python and not python["name"]),
            )
            frames.append(frame)
            mentions.append(frame)
            function = marked_line = ""
        elif _ENTRY_END.match(line):
            function = marked_line = ""
        elif marker := _MARKED_LINE.match(line):
            marked_line = marker[1]
        elif not function and (definition := _DEF.match(line)):
            function = definition[1]
    outermost_first = script_frames[::-1]
    return Traceback(text, (*frames, *outermost_first), (*mentions, *outermost_first), bool(script_frames), handling)


def _clean_script_name(name: str) -> str:
    """Return the plain name of a function: `Cart.add`, `add` for `Object.add [as sum]`, `Cart` for `new Cart`. The top
    of a file has none."""
    plain_name = name.partition(" [as ")[0].removeprefix("new ")
    return ".".join(part for part in plain_name.split(".") if part not in _RECEIVERS)


def _get_stable_name(name: str) -> str:
    parts = [part for part in name.strip().split(".") if part != "<locals>"]
    if parts and parts[-1].startswith("<") and parts[-1] != "<module>":
        return ""
    return ".".join(parts)
