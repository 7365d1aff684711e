"""Where tracebacks point."""

from __future__ import annotations

import re
from collections.abc import Set
from posixpath import normpath
from typing import NamedTuple

_SECTION = re.compile(r"^-+ Captured .*", re.MULTILINE)
_FRAME = re.compile(
    r'^(?:E\s)?\s*File "(?P<python>[^"\n]+)", line (?P<python_line>\d+)'
    r"|^(?P<pytest>[^\s:][^:\n]*\.py):(?P<pytest_line>\d+):",
    re.MULTILINE,
)
_SCRIPT_FRAME = re.compile(r"^\s+at (?:.*\()?(?:file://)?([^\s()]+\.[cm]?[jt]sx?):(\d+)(?::\d+)?\)?$", re.MULTILINE)
_FOREIGN = re.compile(r"/(?:node_modules|site-packages|dist-packages|lib/python3[^/]*)/")


class Frame(NamedTuple):
    path: str
    line: int


def frames(text: str, files: Set[str]) -> list[Frame]:
    """The frames of a traceback (pytest's, Python's own or node's) that lie in these files, outermost first.

    What the test printed is not looked at. An absolute path is taken for the file whose path it ends with.
    """
    found: list[Frame] = []
    for match in _FRAME.finditer(_SECTION.split(text, maxsplit=1)[0]):
        path = _resolve(match["python"] or match["pytest"], files)
        if path:
            found.append(Frame(path, int(match["python_line"] or match["pytest_line"])))
    # node shows the innermost first
    told = [(_resolve(shown, files), int(line)) for shown, line in reversed(_SCRIPT_FRAME.findall(text))]
    return found + [Frame(path, line) for path, line in told if path]


def _resolve(shown: str, files: Set[str]) -> str:
    path = normpath(shown)
    if path in files:
        return path
    if not path.startswith("/") or _FOREIGN.search(path):
        return ""
    parts = path.split("/")
    return next((tail for start in range(1, len(parts)) if (tail := "/".join(parts[start:])) in files), "")
