"""Select the findings to report: those on changed lines, those that are new, the most severe first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from redstart.core.finding import Finding, FindingKind, Risk

SYNTAX = "syntax"
"""The rule of a finding that says that a file cannot be read."""
UNUSED_IMPORT = "F401"
REMARKS = frozenset({"S104", "S108", "S113", "S310", "S324"})
"""Security rules of ruff that are right about the call but cannot tell whether it matters."""


def on_changed_lines(findings: Sequence[Finding], changed: Mapping[str, Sequence[int]]) -> list[Finding]:
    """Return the findings that are on a changed line, or used on one."""
    lines = {path: frozenset(item) for path, item in changed.items()}
    return [item for item in findings if {item.line, item.reaches} & lines.get(item.path, frozenset())]


def exclude_known_findings(findings: Sequence[Finding], known: Mapping[str, int]) -> list[Finding]:
    """Return the findings that are not known yet. Of identical findings, return only as many as were added."""
    remaining = Counter(known)
    new: list[Finding] = []
    for item in findings:
        if remaining[item.fingerprint] > 0:
            remaining[item.fingerprint] -= 1
        else:
            new.append(item)
    return new


def select_new_findings(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """Return the findings of `after` that `before` lacks, by fingerprint.

    If a line's finding appears twice, one of the two is new.
    """
    return exclude_known_findings(after, Counter(item.fingerprint for item in before))


def select_syntax_errors(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that say that a file cannot be read at all."""
    return [finding for finding in findings if finding.rule == SYNTAX]


def select_increases(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """Return, for each rule, as many findings of `after` as were added, those on new lines first.

    Moving a finding, or changing its line otherwise, does not add one.
    """
    had = Counter(item.rule for item in before)
    new = select_new_findings(before, after)
    increases: list[Finding] = []
    current = Counter(item.rule for item in after)
    for item in new:
        if current[item.rule] > had[item.rule]:
            had[item.rule] += 1
            increases.append(item)
    return increases


def without_noise(findings: Sequence[Finding], is_test: Callable[[str], bool]) -> list[Finding]:
    """Drop findings that are correct about the line but not a defect there.

    An import that nothing in `__init__.py` uses is a re-export. A missing timeout, a path in /tmp or a weak hash in a
    test file is test data.
    """
    return [finding for finding in findings if not _is_noise(finding, is_test)]


def _is_noise(finding: Finding, is_test: Callable[[str], bool]) -> bool:
    if finding.rule == UNUSED_IMPORT:
        return PurePosixPath(finding.path).name == "__init__.py"
    return finding.rule in REMARKS and is_test(finding.path)


def sort_by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """Sort the findings: the most severe first, and at equal risk those about security."""
    order = list(Risk)
    return sorted(
        findings, key=lambda item: (-order.index(item.risk), item.kind is FindingKind.code, item.path, item.line)
    )
