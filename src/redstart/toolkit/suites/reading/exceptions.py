"""Read the exceptions of a failing case from its traceback, either pytest's or Python's own."""

from __future__ import annotations

import re
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.base.tracebacks import Traceback, parse_tracebacks, strip_colors

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


def list_exceptions(case: Case) -> list[RaisedException]:
    """List what was raised, causes first. The last one reached the test. Empty if the text names none."""
    exceptions = [
        exception
        for traceback in parse_tracebacks(strip_colors(case.detail))
        if (exception := _parse_traceback(traceback)) is not None
    ]
    parsed = _parse_exception(strip_colors(case.message).strip())
    if parsed is None:
        return exceptions
    last = exceptions.pop() if exceptions else RaisedException("", "")
    text = parsed.text if len(parsed.text) >= len(last.text) or parsed.type != last.type else last.text
    return [*exceptions, last._replace(type=parsed.type, text=text)]


def is_expected(case: Case) -> bool:
    """Whether the test's failing line is in a block that expects an exception. A different one is then a bug."""
    lines = parse_tracebacks(case.detail)[-1].first_entry.splitlines()
    marked_number = next((number for number, line in enumerate(lines) if line.startswith(">")), None)
    if marked_number is None:
        return False
    depth = _get_depth(lines[marked_number])
    for line in reversed(lines[:marked_number]):
        if line.strip() and _get_depth(line) < depth:
            if _EXPECTS.search(line):
                return True
            depth = _get_depth(line)
    return bool(_EXPECTS.search(lines[marked_number]))


def _get_depth(line: str) -> int:
    text = line.removeprefix(">").lstrip()
    return len(line) - len(text)


def _parse_traceback(traceback: Traceback) -> RaisedException | None:
    exception = _parse_exception_lines(traceback.text.splitlines())
    if exception is None:
        return None
    path = line = marked_code = ""
    for frame in traceback.frames:
        if frame.is_quoted:  # the line that pytest marked stands above what the exception says
            marked_code = marked_code or frame.code
        elif not frame.is_unparsed:
            path, line, marked_code = frame.path, frame.code or marked_code, ""
    return RaisedException(exception.type, exception.text, path, line, traceback.last_entry, traceback.handling)


def _parse_exception_lines(lines: list[str]) -> RaisedException | None:
    """Find the exception in pytest's lines that begin with E, or in what follows the last frame."""
    marked_lines = [line[1:].strip() for line in lines if re.match(r"E\s", line)]
    for number, line in enumerate(marked_lines):
        exception = _parse_exception("\n".join(marked_lines[number:])) if _parse_exception(line) else None
        if exception is not None:
            return exception
    for number in range(len(lines) - 1, -1, -1):
        exception = None if lines[number][:1].isspace() else _parse_exception("\n".join(lines[number:]))
        if exception is not None:
            return exception
    return None


def _parse_exception(text: str) -> RaisedException | None:
    if text.startswith("assert "):
        return RaisedException("AssertionError", text)
    match = _TYPED.match(text)
    if match is None:
        return None
    name = match["type"].rpartition(".")[2]
    is_exception = _NAMED_AS_ERROR.search(name) or (
        match["text"] is not None and (name[:1].isupper() or "." in match["type"])
    )
    return RaisedException(name, (match["text"] or "").strip()) if is_exception else None
