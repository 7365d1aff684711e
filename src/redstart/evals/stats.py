"""Compute statistics of past runs from the store."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from statistics import fmean, median

from redstart.core.frozen import FrozenValue
from redstart.core.run import Spend, Step
from redstart.evals.intervals import Estimate, compute_percentile, estimate_share
from redstart.evals.run_facts import RunFacts

MAX_LISTED = 10
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
    precision: Estimate | None = None
    """Of the cards that verified runs were shown: the share with the same failure family as the card that the run saved
    for its own fix. A card counts once per run. Cards that no longer exist do not count."""
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


def compute_stats(all_runs: Sequence[RunFacts], families: Mapping[str, str] | None = None) -> Stats:
    """Compute the statistics of these runs. `families` has the failure family of each fix card, by the card's ID."""
    main_runs = [entry for entry in all_runs if not entry.part]
    tried_runs = [entry for entry in main_runs if entry.tried]
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in main_runs:
        outcomes[entry.row.mode][entry.row.result or entry.row.status] += 1
    by_step = _sum_spend(entry.by_step for entry in all_runs)
    by_model = _sum_spend(entry.by_model for entry in all_runs)
    return Stats(
        runs=len(main_runs),
        parts=len(all_runs) - len(main_runs),
        outcomes={mode: dict(counts.most_common()) for mode, counts in sorted(outcomes.items())},
        verified=_share(tried_runs),
        attempts=_compute_spread([entry.attempts for entry in tried_runs]),
        seconds_to_green=_compute_spread([entry.seconds for entry in tried_runs if entry.verified]),
        spent=reduce(Spend.add, by_step.values(), Spend()),
        by_step={step.value: by_step[step.value] for step in Step if step.value in by_step},
        by_model=dict(sorted(by_model.items(), key=lambda item: (-item[1].tokens, item[0]))),
        attempts_ended=_count_most_common(kind for entry in main_runs for kind in entry.attempt_outcomes),
        errors=_count_most_common(entry.error for entry in main_runs if entry.error),
        reasons=_count_most_common(
            _merge_reasons([entry.reason for entry in tried_runs if entry.reason and not entry.verified])
        ),
        faults=_count_most_common(fault for entry in all_runs for fault in entry.faults),
        memory=_compute_memory_use(main_runs, tried_runs, families or {}),
    )


def _compute_memory_use(
    main_runs: Sequence[RunFacts], tried_runs: Sequence[RunFacts], families: Mapping[str, str]
) -> MemoryUse:
    runs_with_cards = [item for item in tried_runs if item.cards]
    uses = Counter(card for item in runs_with_cards for card in item.cards)
    verified = Counter(card for item in runs_with_cards if item.verified for card in item.cards)
    return MemoryUse(
        runs=len(runs_with_cards),
        verified_with=_share(runs_with_cards),
        verified_without=_share([item for item in tried_runs if not item.cards]),
        precision=_compute_precision(tried_runs, families),
        sources=_count_most_common(source for item in runs_with_cards for source in item.cards.values()),
        often=tuple(CardUse(card=card, runs=count, verified=verified[card]) for card, count in _take_most_common(uses)),
        cards_left=sum(item.cards_left for item in main_runs),
        failures_left=sum(item.failures_left for item in main_runs),
    )


def _compute_precision(tried_runs: Sequence[RunFacts], families: Mapping[str, str]) -> Estimate | None:
    """Compute the share of shown cards whose failure is of the same family as the failure that the run fixed."""
    fitting: list[bool] = []
    for run in tried_runs:
        own_families = {families[card] for card in run.own_cards if card in families}
        shown_cards = {*run.cards, *run.later_cards}.difference(run.own_cards)
        if run.verified and own_families:
            fitting += [families[card] in own_families for card in shown_cards if card in families]
    return estimate_share(sum(fitting), len(fitting)) if fitting else None


def _sum_spend(spends: Iterable[dict[str, Spend]]) -> dict[str, Spend]:
    totals: dict[str, Spend] = {}
    for item in spends:
        for name, spend in item.items():
            totals[name] = totals.get(name, Spend()).add(spend)
    return totals


def _share(runs: Sequence[RunFacts]) -> Estimate | None:
    return estimate_share(sum(run.verified for run in runs), len(runs)) if runs else None


def _compute_spread(numbers: Sequence[float]) -> SpreadStats | None:
    if not numbers:
        return None
    ordered = sorted(numbers)
    return SpreadStats(
        count=len(ordered),
        mean=fmean(ordered),
        median=median(ordered),
        p90=compute_percentile(ordered, 0.9),
        most=ordered[-1],
    )


def _merge_reasons(reasons: Sequence[str]) -> list[str]:
    """Merge reasons that differ only in their numbers into one kind without numbers: `stopped after … minutes`."""
    kinds = [_NUMBER.sub("…", reason) for reason in reasons]
    variants = Counter(kind for _, kind in set(zip(reasons, kinds, strict=True)))
    return [kind if variants[kind] > 1 else reason for reason, kind in zip(reasons, kinds, strict=True)]


def _count_most_common(kinds: Iterable[str]) -> dict[str, int]:
    return dict(_take_most_common(Counter(kinds)))


def _take_most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_LISTED]
