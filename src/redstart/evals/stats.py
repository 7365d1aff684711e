"""Compute statistics of past runs from the store."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from statistics import fmean, median

from redstart.core.noun import FrozenValue
from redstart.core.run import Spend, Step
from redstart.evals.facts import RunFacts
from redstart.evals.intervals import Estimate, percentile, wilson

OFTEN = 10
"""Maximum number of entries to list where there may be any number."""
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class SpreadStats(FrozenValue):
    """The distribution of a number over several runs."""

    count: int
    mean: float
    median: float
    p90: float
    most: float


class CardUse(FrozenValue):
    """A card, the number of runs that it was shown in, and the verified runs among them."""

    card: str
    runs: int
    verified: int


class MemoryUse(FrozenValue):
    """What runs were shown from memory, and how they ended."""

    runs: int = 0
    """Runs that tried and were shown a card."""
    verified_with: Estimate | None = None
    verified_without: Estimate | None = None
    """The share of runs that were shown nothing. The two do not compare equals: a known failure may be easier."""
    sources: dict[str, int] = {}
    """Cards shown, by reason: the same failure (`signature`) or the same kind of failure (`family`)."""
    often: tuple[CardUse, ...] = ()
    """The cards that were shown in the most runs."""
    cards_left: int = 0
    failures_left: int = 0
    """Failures that the runs saved for later runs; `cards_left` counts the fix cards."""


class Stats(FrozenValue):
    """The statistics of past runs. A figure without data is None, or empty."""

    runs: int
    parts: int
    """Child runs. They are in the costs and in no other figure."""
    outcomes: dict[str, dict[str, int]] = {}
    """By mode: the results of its ended runs and the status of the others."""
    verified: Estimate | None = None
    """The share of ended runs with something to do, without audits, that ended verified."""
    attempts: SpreadStats | None = None
    """Attempts of the same runs."""
    seconds_to_green: SpreadStats | None = None
    """Of the verified runs: seconds of work, without waiting for a person."""
    spent: Spend = Spend()
    """Of all runs, including child runs: each model call counts in the run that made it."""
    by_step: dict[str, Spend] = {}
    by_model: dict[str, Spend] = {}
    """Without seconds: the time of a model is not measured apart from its step."""
    attempts_ended: dict[str, int] = {}
    """Attempts by outcome."""
    errors: dict[str, int] = {}
    """The exception of the first failure at the baseline of runs."""
    reasons: dict[str, int] = {}
    """Why runs did not end verified, without numbers."""
    faults: dict[str, int] = {}
    """Unusable answers of models, by kind."""
    memory: MemoryUse = MemoryUse()


def stats_of(every: Sequence[RunFacts]) -> Stats:
    """Compute the statistics of these runs."""
    whole = [entry for entry in every if not entry.part]
    tried = [entry for entry in whole if entry.tried]
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in whole:
        outcomes[entry.row.mode][entry.row.result or entry.row.status] += 1
    by_step = _added(entry.by_step for entry in every)
    by_model = _added(entry.by_model for entry in every)
    return Stats(
        runs=len(whole),
        parts=len(every) - len(whole),
        outcomes={mode: dict(found.most_common()) for mode, found in sorted(outcomes.items())},
        verified=_share(tried),
        attempts=_spread([entry.attempts for entry in tried]),
        seconds_to_green=_spread([entry.seconds for entry in tried if entry.verified]),
        spent=reduce(Spend.plus, by_step.values(), Spend()),
        by_step={step.value: by_step[step.value] for step in Step if step.value in by_step},
        by_model=dict(sorted(by_model.items(), key=lambda item: (-item[1].tokens, item[0]))),
        attempts_ended=_often(kind for entry in whole for kind in entry.ended),
        errors=_often(entry.error for entry in whole if entry.error),
        reasons=_often(_by_kind([entry.reason for entry in tried if entry.reason and not entry.verified])),
        faults=_often(fault for entry in every for fault in entry.faults),
        memory=_memory(whole, tried),
    )


def _memory(whole: Sequence[RunFacts], tried: Sequence[RunFacts]) -> MemoryUse:
    shown = [item for item in tried if item.cards]
    uses = Counter(card for item in shown for card in item.cards)
    verified = Counter(card for item in shown if item.verified for card in item.cards)
    return MemoryUse(
        runs=len(shown),
        verified_with=_share(shown),
        verified_without=_share([item for item in tried if not item.cards]),
        sources=_often(source for item in shown for source in item.cards.values()),
        often=tuple(CardUse(card=card, runs=count, verified=verified[card]) for card, count in _first(uses)),
        cards_left=sum(item.cards_left for item in whole),
        failures_left=sum(item.failures_left for item in whole),
    )


def _added(many: Iterable[dict[str, Spend]]) -> dict[str, Spend]:
    found: dict[str, Spend] = {}
    for item in many:
        for name, spent in item.items():
            found[name] = found.get(name, Spend()).plus(spent)
    return found


def _share(runs: Sequence[RunFacts]) -> Estimate | None:
    return wilson(sum(run.verified for run in runs), len(runs)) if runs else None


def _spread(numbers: Sequence[float]) -> SpreadStats | None:
    if not numbers:
        return None
    ordered = sorted(numbers)
    return SpreadStats(
        count=len(ordered),
        mean=fmean(ordered),
        median=median(ordered),
        p90=percentile(ordered, 0.9),
        most=ordered[-1],
    )


def _by_kind(reasons: Sequence[str]) -> list[str]:
    """Merge reasons that differ only in their numbers into one kind without numbers: `stopped after … minutes`."""
    kinds = [_NUMBER.sub("…", reason) for reason in reasons]
    differing = Counter(kind for _, kind in set(zip(reasons, kinds, strict=True)))
    return [kind if differing[kind] > 1 else reason for reason, kind in zip(reasons, kinds, strict=True)]


def _often(kinds: Iterable[str]) -> dict[str, int]:
    return dict(_first(Counter(kinds)))


def _first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:OFTEN]
