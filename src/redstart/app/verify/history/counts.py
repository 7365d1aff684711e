"""Count the changes of a history by what their verdicts show, in all and for each author and agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from redstart.core.history import ChangeCounts, ChangeGroup, MergedChange
from redstart.core.verification import ASKING, ClaimKind, VerificationEnd

_NOT_RUN = (VerificationEnd.environment, VerificationEnd.no_tests)
_WORSE = (VerificationEnd.worse, VerificationEnd.tampered)
BOTS = "bots"
"""The name of the changes of bots that are no coding agents, in the groups by agent."""


def is_outage(end: VerificationEnd | None) -> bool:
    """Return whether the tests cannot run in this environment."""
    return end in _NOT_RUN


def is_judged(change: MergedChange) -> bool:
    """Return whether the verdict rests on tests."""
    return change.end is not None and not is_outage(change.end) and not change.no_test_ran


def is_worse(change: MergedChange) -> bool:
    return change.end in _WORSE


def is_weakened(change: MergedChange) -> bool:
    return is_judged(change) and any(claim.kind in ASKING for claim in change.claims)


def is_green_without(change: MergedChange) -> bool:
    return is_judged(change) and any(claim.kind is ClaimKind.green_without for claim in change.claims)


def count_changes(changes: Sequence[MergedChange]) -> ChangeCounts:
    return ChangeCounts(
        changes=len(changes),
        judged=sum(map(is_judged, changes)),
        proven=sum(change.end is VerificationEnd.verified for change in changes),
        green_without=sum(map(is_green_without, changes)),
        weakened=sum(map(is_weakened, changes)),
        untested=sum(bool(change.untested) for change in changes),
        worse=sum(map(is_worse, changes)),
        no_test_ran=sum(change.no_test_ran for change in changes),
        not_run=sum(is_outage(change.end) for change in changes),
        not_examined=sum(change.end is None for change in changes),
    )


def group_by_author(changes: Iterable[MergedChange]) -> list[ChangeGroup]:
    groups: dict[tuple[str, bool], list[MergedChange]] = defaultdict(list)
    for change in changes:
        groups[change.author, change.bot].append(change)
    return _sort(ChangeGroup(name=name, bot=bot, counts=count_changes(items)) for (name, bot), items in groups.items())


def group_by_agent(changes: Iterable[MergedChange]) -> list[ChangeGroup]:
    """Group the changes by the agents named in them. The rest are those of other bots, and those of people alone."""
    groups: dict[str, list[MergedChange]] = defaultdict(list)
    for change in changes:
        for name in change.agents or (BOTS if change.bot else "",):
            groups[name].append(change)
    return _sort(
        ChangeGroup(name=name, bot=name == BOTS, counts=count_changes(items)) for name, items in groups.items()
    )


def _sort(groups: Iterator[ChangeGroup]) -> list[ChangeGroup]:
    return sorted(groups, key=lambda group: (-group.counts.changes, group.name))
