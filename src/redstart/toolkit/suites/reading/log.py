"""Read the failing tests that the log of a test run names."""

from __future__ import annotations

import re
from typing import NamedTuple

from redstart.toolkit.base.tracebacks import strip_colors

_ID = r"[^\s:]+\.py(?:::[^\s\[]+(?:\[.*?\])?)*"
_PYTEST = re.compile(rf"(?:^|\s)(?:FAILED|ERROR) (?P<id>{_ID})(?: - (?P<message>.+))?\s*$")
"""A line of pytest's short summary, after whatever a CI service puts before it."""
_VERBOSE = re.compile(rf"(?:^|\s)(?P<id>{_ID}) (?:FAILED|ERROR)(?P<message>)(?: +\[ *\d+%\])?\s*$")
_UNITTEST = re.compile(r"(?:^|\s)(?:FAIL|ERROR): (?P<name>\w+) \((?P<owner>[\w.]+)\)(?P<message>)")


class LoggedFailure(NamedTuple):
    id: str
    """As the runner names the test, or the file that could not be loaded."""
    message: str
    """The first line of its failure; empty if the log does not show it beside the name."""


def list_logged_failures(text: str) -> list[LoggedFailure]:
    """List the failing tests in the output of pytest or unittest, each once."""
    failures: dict[str, str] = {}
    for line in strip_colors(text).splitlines():
        if match := _PYTEST.search(line) or _VERBOSE.search(line):
            id_ = match["id"]
        elif match := _UNITTEST.search(line):
            owner, name = match["owner"], match["name"]
            # Python 3.11 and later repeat the method's name.
            id_ = owner if owner.endswith(f".{name}") else f"{owner}.{name}"
        else:
            continue
        failures[id_] = failures.get(id_) or match["message"] or ""
    return [LoggedFailure(id_, message) for id_, message in failures.items()]
