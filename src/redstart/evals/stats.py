"""What everyday runs came to: the store's runs, counted."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from statistics import fmean, median

from redstart.core.noun import Noun
from redstart.core.run import Spend, Step
from redstart.evals.facts import RunFacts
from redstart.evals.intervals import Estimate, percentile, wilson

OFTEN = 10
"""Of kinds that there may be any number of, as many are told."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Spread(Noun):
    """Numbers of several runs."""

    count: int
    mean: float
    median: float
    p90: float
    most: float


class CardUse(Noun):
    """A card, in how many runs it was shown, and how many of these were verified."""

    card: str
    runs: int
    verified: int


class MemoryUse(Noun):
    """What runs were shown of earlier ones, and how it went."""

    runs: int = 0
    """In which something was shown, of those that tried."""
    verified_with: Estimate | None = None
    verified_without: Estimate | None = None
    """Of runs that were shown nothing. It is no comparison of equals: a failure that is known may be an easier one."""
    sources: dict[str, int] = {}
    """Cards shown, by why: the same failure (`signature`) or the same kind of it (`family`)."""
    often: tuple[CardUse, ...] = ()
    """The cards that were shown in the most runs."""
    cards_left: int = 0
    failures_left: int = 0
    """What the runs themselves left for later ones."""


class Stats(Noun):
    """A figure that nothing can be said about is None, or empty."""

    runs: int
    parts: int
    """Runs that another run began. They are in the costs and in no other figure."""
    outcomes: dict[str, dict[str, int]] = {}
    """By mode: how its runs ended, or where they stand."""
    verified: Estimate | None = None
    """Of the runs that had something to do and ended, audits apart, the share that ended verified."""
    attempts: Spread | None = None
    """Of the same runs."""
    seconds_to_green: Spread | None = None
    """Of those that were verified: seconds of work, without waiting for a person."""
    spent: Spend = Spend()
    """Of all runs, parts among them: each call of a model is counted where it was made."""
    by_step: dict[str, Spend] = {}
    by_model: dict[str, Spend] = {}
    """Without seconds: how long a model took is not told apart from the rest of its step."""
    attempts_ended: dict[str, int] = {}
    """Attempts by what they came to."""
    errors: dict[str, int] = {}
    """What was red at the beginning of runs: the kind of the first failure."""
    reasons: dict[str, int] = {}
    """Why runs did not end verified, numbers left out."""
    faults: dict[str, int] = {}
    """Answers of models that could not be used."""
    memory: MemoryUse = MemoryUse()


def stats_of(every: Sequence[RunFacts]) -> Stats:
    """All of it, of these runs."""
    whole = [one for one in every if not one.part]
    tried = [one for one in whole if one.tried]
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for one in whole:
        outcomes[one.row.mode][one.row.result or one.row.status] += 1
    by_step = _added(one.by_step for one in every)
    by_model = _added(one.by_model for one in every)
    return Stats(
        runs=len(whole),
        parts=len(every) - len(whole),
        outcomes={mode: dict(found.most_common()) for mode, found in sorted(outcomes.items())},
        verified=_share(tried),
        attempts=_spread([one.attempts for one in tried]),
        seconds_to_green=_spread([one.seconds for one in tried if one.verified]),
        spent=reduce(Spend.plus, by_step.values(), Spend()),
        by_step={step.value: by_step[step.value] for step in Step if step.value in by_step},
        by_model=dict(sorted(by_model.items(), key=lambda item: (-item[1].tokens, item[0]))),
        attempts_ended=_often(kind for one in whole for kind in one.ended),
        errors=_often(one.error for one in whole if one.error),
        reasons=_often(_by_kind([one.reason for one in tried if one.reason and not one.verified])),
        faults=_often(fault for one in every for fault in one.faults),
        memory=_memory(whole, tried),
    )


def _memory(whole: Sequence[RunFacts], tried: Sequence[RunFacts]) -> MemoryUse:
    shown = [one for one in tried if one.cards]
    uses = Counter(card for one in shown for card in one.cards)
    verified = Counter(card for one in shown if one.verified for card in one.cards)
    return MemoryUse(
        runs=len(shown),
        verified_with=_share(shown),
        verified_without=_share([one for one in tried if not one.cards]),
        sources=_often(source for one in shown for source in one.cards.values()),
        often=tuple(CardUse(card=card, runs=count, verified=verified[card]) for card, count in _first(uses)),
        cards_left=sum(one.cards_left for one in whole),
        failures_left=sum(one.failures_left for one in whole),
    )


def _added(many: Iterable[dict[str, Spend]]) -> dict[str, Spend]:
    found: dict[str, Spend] = {}
    for one in many:
        for name, spent in one.items():
            found[name] = found.get(name, Spend()).plus(spent)
    return found


def _share(runs: Sequence[RunFacts]) -> Estimate | None:
    return wilson(sum(one.verified for one in runs), len(runs)) if runs else None


def _spread(numbers: Sequence[float]) -> Spread | None:
    if not numbers:
        return None
    ordered = sorted(numbers)
    return Spread(
        count=len(ordered),
        mean=fmean(ordered),
        median=median(ordered),
        p90=percentile(ordered, 0.9),
        most=ordered[-1],
    )


def _by_kind(reasons: Sequence[str]) -> list[str]:
    """Those that differ in their numbers alone as one kind, without the numbers: `stopped after … minutes`."""
    kinds = [_NUMBER.sub("…", reason) for reason in reasons]
    differing = Counter(kind for _, kind in set(zip(reasons, kinds, strict=True)))
    return [kind if differing[kind] > 1 else reason for reason, kind in zip(reasons, kinds, strict=True)]


def _often(kinds: Iterable[str]) -> dict[str, int]:
    return dict(_first(Counter(kinds)))


def _first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:OFTEN]
