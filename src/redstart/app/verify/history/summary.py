"""What a history shows, in words: the summary, and the changes worth a look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from redstart.app.verify.history.counts import is_green_without, is_outage, is_weakened, is_worse
from redstart.app.verify.kinds import KINDS, describe_lines
from redstart.core.frozen import format_count
from redstart.core.history import ChangeCounts, ChangeHistory, MergedChange
from redstart.core.verification import ASKING, ClaimKind

COLUMNS = ("changes", "proven", "green without", "weakened", "untested", "worse", "cannot run")
"""The columns of a table of authors or agents, after their names."""
COLUMN_MEANINGS = (
    ("proven", "a test fails without the change and passes with it"),
    ("green without", "the source changed, and a new test passes without the change too"),
    ("weakened", "a test demands less than before, is gone or is skipped"),
    ("untested", "no test that imports the file runs some of the changed lines"),
    ("worse", "a test fails with the change, or the change hides failures"),
    ("cannot run", "the tests do not run in this environment"),
)
NO_AGENT = "no agent named"


def list_counts(counts: ChangeCounts) -> tuple[int, ...]:
    """List the counts in the order of the columns."""
    return (
        counts.changes,
        counts.proven,
        counts.green_without,
        counts.weakened,
        counts.untested,
        counts.worse,
        counts.not_run,
    )


class NoteworthyChange(NamedTuple):
    change: MergedChange
    details: tuple[str, ...]
    """What to look at, one line each."""


class NoteworthySection(NamedTuple):
    title: str
    meaning: str
    changes: list[NoteworthyChange]


def summarize(counts: ChangeCounts, days: int, minutes: float | None, *, is_cut: bool) -> Iterator[str]:
    """Say what the history shows, one sentence each."""
    if not counts.changes:
        yield f"No change in the last {format_count(days, 'day')}."
    else:
        yield from _summarize_verdicts(counts, days, minutes)
    if is_cut:
        yield "The clone is shallow, so older changes of the period may be missing."


def _summarize_verdicts(counts: ChangeCounts, days: int, minutes: float | None) -> Iterator[str]:
    whole = f"{format_count(counts.changes, 'change')} in the last {format_count(days, 'day')}"
    lines = "changes" if counts.untested == 1 else "change"
    findings = (
        (counts.green_without, "added tests that pass without the change"),
        (counts.weakened, "weakened a test"),
        (counts.untested, f"{lines} lines that no test runs"),
        (counts.worse, "made tests fail"),
    )
    parts = [f"{count:,} {text}" for count, text in findings if count]
    if parts:
        yield f"Of {whole}, {_join(parts)}."
    elif counts.judged:
        yield f"Of {whole}, none weakened a test, changed lines that no test runs or added tests that prove nothing."
    else:
        yield f"Of {whole}, none could be judged by tests."
    rest = (
        (counts.proven, "proven by a test"),
        (counts.no_test_ran, "without a file that a test reads"),
        (counts.not_run, "cannot run in this environment"),
        (counts.not_examined, f"not examined within {minutes:g} minutes" if minutes is not None else "not examined"),
    )
    if texts := [f"{count:,} {text}" for count, text in rest if count]:
        yield f"{'; '.join(texts)}."


def _join(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def list_noteworthy(history: ChangeHistory) -> list[NoteworthySection]:
    """List the changes that a person should look at, by why. A change can be in several sections."""
    against = (ClaimKind.hidden, ClaimKind.broken)
    changes = history.changes
    sections = (
        NoteworthySection(
            "Worse",
            "a test fails with the change, or the change hides failures",
            [
                NoteworthyChange(change, tuple(_list_tests(change, against)) or (change.reason,))
                for change in changes
                if is_worse(change)
            ],
        ),
        NoteworthySection(
            "Weakened",
            "a test demands less than before, is gone or is skipped",
            [NoteworthyChange(change, tuple(_list_tests(change, ASKING))) for change in changes if is_weakened(change)],
        ),
        NoteworthySection(
            "Green without",
            "new tests pass without the change too, so they prove nothing",
            [
                NoteworthyChange(change, tuple(_list_tests(change, (ClaimKind.green_without,))))
                for change in changes
                if is_green_without(change)
            ],
        ),
        NoteworthySection(
            "Untested",
            "no test that imports the file runs these changed lines",
            [
                NoteworthyChange(
                    change, tuple(f"{item.path}, {describe_lines(item.lines)}" for item in change.untested)
                )
                for change in changes
                if change.untested
            ],
        ),
    )
    return [section for section in sections if section.changes]


def list_obstacles(history: ChangeHistory) -> list[str]:
    """List why changes cannot run in this environment, the most frequent reason first."""
    reasons = Counter(change.reason for change in history.changes if is_outage(change.end))
    return [f"{format_count(count, 'change')}: {reason}" for reason, count in reasons.most_common()]


def _list_tests(change: MergedChange, kinds: Iterable[ClaimKind]) -> Iterator[str]:
    chosen = frozenset(kinds)
    for claim in change.claims:
        if claim.kind in chosen:
            why = claim.note or (KINDS[claim.kind].meaning if claim.kind is not ClaimKind.green_without else "")
            yield f"{claim.test}: {why}" if why else claim.test
