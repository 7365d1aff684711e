"""What static tools say of the code."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import Field

from redstart.core.noun import FrozenValue, clip, many
from redstart.core.packages import Installed

TRIPWIRE = "tripwire"
"""The tool that a finding names where a change looks as if it was made for the tests alone."""


class Severity(StrEnum):
    """Whether a patch that brings such a finding goes back to the model."""

    error = "error"
    warning = "warning"


class FindingKind(StrEnum):
    """What sort of defect it is. All but `code` are about security or about queries that cannot work."""

    sql_injection = "sql_injection"
    sql_misspelt = "sql_misspelt"
    secret = "secret"  # noqa: S105
    dangerous_call = "dangerous_call"
    code = "code"


class Risk(StrEnum):
    """How much is at stake, for reports and for `--fail-on`."""

    low = "low"
    medium = "medium"
    high = "high"

    def reaches(self, other: Risk) -> bool:
        """Whether it is as high as `other`, or higher."""
        order = list(Risk)
        return order.index(self) >= order.index(other)


class Finding(FrozenValue):
    tool: str
    rule: str
    path: str
    line: int
    severity: Severity
    message: str
    fingerprint: str
    """Stable while the line's text is: a finding that merely moved is not a new one."""
    kind: FindingKind = FindingKind.code
    risk: Risk = Risk.low
    also: tuple[str, ...] = ()
    """Other tools that say the same of the line, each as `tool rule`."""
    reaches: int = 0
    """The line where what was built here is used, if that is another one; 0 where it is not."""

    def brief(self) -> Finding:
        """As the state carries it."""
        return self.model_copy(
            update={"path": clip(self.path, 200), "message": clip(self.message, 200), "also": self.also[:4]}
        )

    @staticmethod
    def mark(tool: str, rule: str, path: str, line_text: str) -> str:
        """The fingerprint of a finding on a line with this text."""
        return hashlib.sha256("\x1f".join((tool, rule, path, line_text.strip())).encode()).hexdigest()[:16]


class ReviewSummary(FrozenValue):
    """How many of the model's answers in an audit could be read."""

    answers: int = 0
    unreadable: int = 0
    reason: str = ""
    """Why the last of the unreadable ones could not be read."""
    unreviewed: int = 0
    """Files that no readable answer covers."""

    @property
    def warning(self) -> str:
        """What the user must know: that some files were not reviewed by the model. Empty where all were."""
        if not self.unreviewed:
            return ""
        checked = f"{many(self.unreviewed, 'file')} {'was' if self.unreviewed == 1 else 'were'} checked by tools only"
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.unreadable} of {many(self.answers, 'model answer')} could not be read{why}; {checked}"


class Findings(FrozenValue):
    """The first few findings, how many there are, and the blob that holds all of them."""

    count: int = 0
    first: tuple[Finding, ...] = ()
    full: str = ""
    fault: str = ""
    """Why the change cannot be tested at all (a syntax error), in the tool's words."""
    failing: int = Field(default=0, exclude_if=lambda count: not count)
    """Of an audit: how many are new and reach the risk that the user will not accept."""
    dropped: int = Field(default=0, exclude_if=lambda count: not count)
    """What a model claimed and the code does not bear out."""
    accepted: int = Field(default=0, exclude_if=lambda count: not count)
    """Of an audit: how many are left out because the baseline file accepts them."""
    review: ReviewSummary | None = Field(default=None, exclude_if=lambda review: review is None)
    """What the model's answers came to, where an audit asked for a review."""
    asks: str = Field(default="", exclude_if=lambda text: not text)
    """What a person has to say yes to before the change can be tested."""
    packages: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """The packages that this is about."""
    installed: Installed | None = Field(default=None, exclude_if=lambda made: made is None)
    """What was installed for the change."""


class FindingList(FrozenValue):
    """What the blob of a `Findings` holds, and what `redstart audit --format json` prints."""

    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = Field(default=(), exclude_if=lambda texts: not texts)
    """What an audit could not do, a sentence each."""
    unreviewed: tuple[str, ...] = Field(default=(), exclude_if=lambda paths: not paths)
    """Files that the model was asked to review without giving a readable answer."""
    accepted: int = Field(default=0, exclude_if=lambda count: not count)
    """How many findings are left out because the baseline file accepts them."""


class Checks(FrozenValue):
    """How the user wants code checked."""

    commands: dict[str, tuple[str, ...]] = {}
    """Further tools by name, each a command line that is run in the sandbox; a built-in tool's name replaces it, and
    an empty command leaves it out."""
    block: tuple[str, ...] = ()
    """Calls, by their full names, that a patch may not add."""


class Scan(FrozenValue):
    """What an audit looks at and how it is judged."""

    paths: tuple[str, ...] = Field(default=(), max_length=200)
    """Files and folders of the snapshot; empty for all of it."""
    lines: str = ""
    """Blob: a `ChangedLines`; empty where every line counts."""
    known: str = ""
    """Blob: a `KnownFindings`, findings that are accepted already."""
    fail_on: Risk | None = None
    review: bool = False
    """Whether a model reviews the code beside the tools."""


class ChangedLines(FrozenValue):
    """The lines that a change added or altered, by path."""

    lines: dict[str, tuple[int, ...]] = {}


class KnownFindings(FrozenValue):
    """Fingerprints of findings that somebody has looked at and accepted, with how often each occurs."""

    version: int = 1
    findings: dict[str, int] = {}
