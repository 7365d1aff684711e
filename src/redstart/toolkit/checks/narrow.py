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


def on_changed_lines(found: Sequence[Finding], changed: Mapping[str, Sequence[int]]) -> list[Finding]:
    """Return the findings that are on a changed line, or used on one."""
    lines = {path: frozenset(item) for path, item in changed.items()}
    return [item for item in found if {item.line, item.reaches} & lines.get(item.path, frozenset())]


def new_since(found: Sequence[Finding], known: Mapping[str, int]) -> list[Finding]:
    """Return the findings that are not known yet; of equal findings, as many as there are more of now."""
    left = Counter(known)
    new: list[Finding] = []
    for item in found:
        if left[item.fingerprint] > 0:
            left[item.fingerprint] -= 1
        else:
            new.append(item)
    return new


def new_findings(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """Return the findings of `after` that `before` lacks, by fingerprint.

    If a line's finding appears twice, one of the two is new.
    """
    return new_since(after, Counter(item.fingerprint for item in before))


def syntax_errors(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that say that a file cannot be read at all."""
    return [finding for finding in findings if finding.rule == SYNTAX]


def more_than(before: Sequence[Finding], after: Sequence[Finding]) -> list[Finding]:
    """Return the findings of `after` by which a rule has more of them than before; new lines come first.

    Moving a finding, or changing its line otherwise, does not add one.
    """
    had = Counter(item.rule for item in before)
    new = new_findings(before, after)
    grown: list[Finding] = []
    now = Counter(item.rule for item in after)
    for item in new:
        if now[item.rule] > had[item.rule]:
            had[item.rule] += 1
            grown.append(item)
    return grown


def without_noise(found: Sequence[Finding], is_test: Callable[[str], bool]) -> list[Finding]:
    """Drop findings that are correct about the line but not a defect there.

    An import that nothing in `__init__.py` uses is a re-export. A missing timeout, a path in /tmp or a weak hash in a
    test file is test data.
    """
    return [finding for finding in found if not _is_noise(finding, is_test)]


def _is_noise(finding: Finding, is_test: Callable[[str], bool]) -> bool:
    if finding.rule == UNUSED_IMPORT:
        return PurePosixPath(finding.path).name == "__init__.py"
    return finding.rule in REMARKS and is_test(finding.path)


def most_telling(found: Sequence[Finding]) -> list[Finding]:
    """Sort the findings: the most severe first, and at equal risk those about security."""
    order = list(Risk)
    return sorted(
        found, key=lambda item: (-order.index(item.risk), item.kind is FindingKind.code, item.path, item.line)
    )
