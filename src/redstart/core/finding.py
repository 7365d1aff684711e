"""What static tools say of the code."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from redstart.core.noun import Noun, clip

TRIPWIRE = "tripwire"
"""The tool that a finding names where a change looks as if it was made for the tests alone."""


class Severity(StrEnum):
    error = "error"
    warning = "warning"


class Finding(Noun):
    tool: str
    rule: str
    path: str
    line: int
    severity: Severity
    message: str
    fingerprint: str
    """Stable while the line's text is: a finding that merely moved is not a new one."""

    def brief(self) -> Finding:
        """As the state carries it."""
        return self.model_copy(update={"path": clip(self.path, 200), "message": clip(self.message, 200)})

    @staticmethod
    def mark(tool: str, rule: str, path: str, line_text: str) -> str:
        """The fingerprint of a finding on a line with this text."""
        return hashlib.sha256("\x1f".join((tool, rule, path, line_text.strip())).encode()).hexdigest()[:16]


class Findings(Noun):
    """The first few findings, how many there are, and the blob that holds all of them."""

    count: int = 0
    first: tuple[Finding, ...] = ()
    full: str = ""
    fault: str = ""
    """Why the change cannot be tested at all (a syntax error), in the tool's words."""


class FindingList(Noun):
    """What the blob of a `Findings` holds."""

    findings: tuple[Finding, ...] = ()
