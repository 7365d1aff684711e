"""Findings of static tools about the code."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from pydantic import Field

from redstart.core.frozen import FrozenValue, clip, format_count
from redstart.core.packages import Installed

TRIPWIRE = "tripwire"
"""The tool name of a finding about a change that seems to be made only to pass the tests."""


class Severity(StrEnum):
    """Whether a patch that adds such a finding goes back to the model."""

    error = "error"
    warning = "warning"


class FindingKind(StrEnum):
    """The kind of defect. All but `code` are about security or about queries that cannot work."""

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

    def is_at_least(self, other: Risk) -> bool:
        """Return whether this risk is as high as `other`, or higher."""
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
    """Stable as long as the line's text is: a finding that only moved is not new."""
    kind: FindingKind = FindingKind.code
    risk: Risk = Risk.low
    also: tuple[str, ...] = ()
    """Other tools that report the same about the line, each as `tool rule`."""
    reaches: int = 0
    """The line where the value built here is used, if it is a different line; otherwise 0."""

    def shorten(self) -> Finding:
        """Return the finding as the run state carries it: long texts are clipped."""
        return self.model_copy(
            update={"path": clip(self.path, 200), "message": clip(self.message, 200), "also": self.also[:4]}
        )

    @staticmethod
    def mark(tool: str, rule: str, path: str, line_text: str) -> str:
        """Compute the fingerprint of a finding on a line with this text."""
        return hashlib.sha256("\x1f".join((tool, rule, path, line_text.strip())).encode()).hexdigest()[:16]


class ReviewSummary(FrozenValue):
    """How many of the model's answers in an audit could be read."""

    answers: int = 0
    unreadable: int = 0
    reason: str = ""
    """Why the last unreadable answer could not be read."""
    unreviewed: int = 0
    """Files that no readable answer covers."""

    @property
    def warning(self) -> str:
        """A warning for the user that the model did not review some files; empty if it reviewed all."""
        if not self.unreviewed:
            return ""
        checked_text = (
            f"{format_count(self.unreviewed, 'file')} {'was' if self.unreviewed == 1 else 'were'} checked by tools only"
        )
        reason_text = f" ({self.reason})" if self.reason else ""
        return (
            f"{self.unreadable} of {format_count(self.answers, 'model answer')} could not be "
            f"read{reason_text}; {checked_text}"
        )


class Findings(FrozenValue):
    """The first few findings, how many there are, and the blob that holds all of them."""

    count: int = 0
    first: tuple[Finding, ...] = ()
    full: str = ""
    fault: str = ""
    """Why the change cannot be tested at all (a syntax error), in the tool's words."""
    failing: int = Field(default=0, exclude_if=lambda count: not count)
    """In an audit: how many findings are new and reach the risk that the user does not accept."""
    dropped: int = Field(default=0, exclude_if=lambda count: not count)
    """How many claims of a model the code does not confirm."""
    accepted: int = Field(default=0, exclude_if=lambda count: not count)
    """In an audit: how many findings are left out because the baseline file accepts them."""
    review: ReviewSummary | None = Field(default=None, exclude_if=lambda review: review is None)
    """Summary of the model's answers, if the audit asked for a review."""
    asks: str = Field(default="", exclude_if=lambda text: not text)
    """What a person must approve before the change can be tested."""
    packages: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """The packages that `asks` is about."""
    installed: Installed | None = Field(default=None, exclude_if=lambda value: value is None)
    """The packages that were installed for the change."""


class FindingList(FrozenValue):
    """The content of the blob of a `Findings`, and the output of `redstart audit --format json`."""

    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = Field(default=(), exclude_if=lambda texts: not texts)
    """What an audit could not do, one sentence each."""
    unreviewed: tuple[str, ...] = Field(default=(), exclude_if=lambda paths: not paths)
    """Files that the model was asked to review but gave no readable answer for."""
    accepted: int = Field(default=0, exclude_if=lambda count: not count)
    """How many findings are left out because the baseline file accepts them."""


class Checks(FrozenValue):
    """The user's configuration of code checks."""

    commands: dict[str, tuple[str, ...]] = {}
    """Additional tools by name, each with a command line that runs in the sandbox. The name of a built-in tool
    replaces that tool, and an empty command disables it."""
    block: tuple[str, ...] = ()
    """Full names of functions that a patch may not add calls to."""


class Scan(FrozenValue):
    """What an audit covers, and how its findings are judged."""

    paths: tuple[str, ...] = Field(default=(), max_length=200)
    """Files and folders of the snapshot; empty for all of it."""
    lines: str = ""
    """Blob: a `ChangedLines`; empty if every line counts."""
    known: str = ""
    """Blob: a `KnownFindings`, the findings that are already accepted."""
    fail_on: Risk | None = None
    review: bool = False
    """Whether a model reviews the code in addition to the tools."""


class ChangedLines(FrozenValue):
    """The lines that a change added or modified, by path."""

    lines: dict[str, tuple[int, ...]] = {}


class KnownFindings(FrozenValue):
    """Fingerprints of findings that a person has reviewed and accepted, with the number of occurrences of each."""

    version: int = 1
    findings: dict[str, int] = {}
