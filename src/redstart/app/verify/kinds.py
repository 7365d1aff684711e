"""How reports name what the runs show of a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.verification import ClaimKind


class KindText(NamedTuple):
    title: str
    meaning: str
    """What the test does, after its name."""


KINDS = {
    ClaimKind.hidden: KindText("Hidden", "fails, and only the new test configuration hides it"),
    ClaimKind.broken: KindText("Broken", "fails with the change"),
    ClaimKind.weakened: KindText("Weakened", "demands less than before"),
    ClaimKind.removed: KindText("Removed", "is gone, and no other test replaces it"),
    ClaimKind.skipped: KindText("Skipped", "ran before the change and does not run any more"),
    ClaimKind.environment: KindText("Environment", "needs something that this machine lacks"),
    ClaimKind.fixed: KindText("Fixed", "failed before the change and passes now"),
    ClaimKind.proven: KindText("Proven", "fails without the change and passes with it"),
    ClaimKind.absent_before: KindText("Absent before", "tests only what did not exist before the change"),
    ClaimKind.green_without: KindText("Green without", "passes without the change too, so it proves nothing"),
    ClaimKind.outdated: KindText("Outdated", "its old form uses a name that is gone"),
    ClaimKind.replaced: KindText("Replaced", "other tests contain it, or its code is gone"),
    ClaimKind.edited: KindText("Edited", "its old form and its new form pass on old and new code"),
    ClaimKind.red_before: KindText("Red before", "failed before the change and still fails"),
    ClaimKind.flaky: KindText("Flaky", "passes in one run and fails in another"),
}
"""The kinds in the order of a report."""
SUMMARIZED_KINDS = frozenset(
    (ClaimKind.outdated, ClaimKind.replaced, ClaimKind.edited, ClaimKind.red_before, ClaimKind.flaky)
)
"""What a short report only counts."""


def describe_lines(lines: Sequence[int]) -> str:
    """Describe sorted line numbers: `lines 3, 7-9`."""
    ranges: list[tuple[int, int]] = []
    for line in lines:
        start = ranges.pop()[0] if ranges and ranges[-1][1] == line - 1 else line
        ranges.append((start, line))
    texts = [f"{first}-{last}" if last > first else str(first) for first, last in ranges]
    return f"{'lines' if len(lines) > 1 else 'line'} {', '.join(texts)}"
