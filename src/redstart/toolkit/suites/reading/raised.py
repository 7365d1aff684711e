"""Reads the exceptions of a failing case from its traceback, either pytest's or Python's own."""

from __future__ import annotations

import re
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.base.tracebacks import Traceback, plain, tracebacks

_TYPED = re.compile(r"^(?P<type>(?:[A-Za-z_]\w*\.(?:<locals>\.)?)*[A-Za-z_]\w*)(?::\s*(?P<text>.*))?$", re.DOTALL)
_NAMED_AS_ERROR = re.compile(
    r"(?:Error|Exception|Exit|Warning|Interrupt|Timeout|Unavailable|Available|Failed|Failure)$"
)
_EXPECTS = re.compile(r"\braises\(|\bassertRaises(?:Regex)?\(|\bsuppress\(")


class RaisedException(NamedTuple):
    """One exception of a chain."""

    type: str
    """The type's name without its module."""
    text: str
    path: str = ""
    """The file of the innermost frame, as the traceback names it."""
    line: str = ""
    """The source line of that frame."""
    entry: str = ""
    """Everything that the traceback shows of the innermost frame, including arguments."""
    handling: bool = False
    """Whether it was raised while the previous one was handled, but not `from` it."""

    @property
    def by_statement(self) -> bool:
        return self.line.startswith("raise")


def chain(case: Case) -> list[RaisedException]:
    """List what was raised, causes first. The last one reached the test. Empty if the text names none."""
    found = [raised for traceback in tracebacks(plain(case.detail)) if (raised := _raised(traceback)) is not None]
    told = _typed(plain(case.message).strip())
    if told is None:
        return found
    last = found.pop() if found else RaisedException("", "")
    text = told.text if len(told.text) >= len(last.text) or told.type != last.type else last.text
    return [*found, last._replace(type=told.type, text=text)]


def is_expected(case: Case) -> bool:
    """Whether the test's failing line is in a block that expects an exception. A different one is then a bug."""
    lines = tracebacks(case.detail)[-1].first_entry.splitlines()
    marked = next((number for number, line in enumerate(lines) if line.startswith(">")), None)
    if marked is None:
        return False
    depth = _depth(lines[marked])
    for line in reversed(lines[:marked]):
        if line.strip() and _depth(line) < depth:
            if _EXPECTS.search(line):
                return True
            depth = _depth(line)
    return bool(_EXPECTS.search(lines[marked]))


def _depth(line: str) -> int:
    text = line.removeprefix(">").lstrip()
    return len(line) - len(text)


def _raised(traceback: Traceback) -> RaisedException | None:
    told = _said(traceback.text.splitlines())
    if told is None:
        return None
    path = line = marked = ""
    for frame in traceback.frames:
        if frame.quoted:  # the line that pytest marked stands above what the exception says
            marked = marked or frame.code
        elif not frame.unread:
            path, line, marked = frame.path, frame.code or marked, ""
    return RaisedException(told.type, told.text, path, line, traceback.last_entry, traceback.handling)


def _said(lines: list[str]) -> RaisedException | None:
    """Find the exception in pytest's lines that begin with E, or in what follows the last frame."""
    marked = [line[1:].strip() for line in lines if re.match(r"E\s", line)]
    for number, line in enumerate(marked):
        told = _typed("\n".join(marked[number:])) if _typed(line) else None
        if told is not None:
            return told
    for number in range(len(lines) - 1, -1, -1):
        told = None if lines[number][:1].isspace() else _typed("\n".join(lines[number:]))
        if told is not None:
            return told
    return None


def _typed(text: str) -> RaisedException | None:
    if text.startswith("assert "):
        return RaisedException("AssertionError", text)
    match = _TYPED.match(text)
    if match is None:
        return None
    name = match["type"].rpartition(".")[2]
    known = _NAMED_AS_ERROR.search(name) or (match["text"] is not None and (name[:1].isupper() or "." in match["type"]))
    return RaisedException(name, (match["text"] or "").strip()) if known else None
