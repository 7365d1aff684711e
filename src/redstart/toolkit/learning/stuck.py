"""Detects that a run goes in circles, at the first attempt that shows it, and chooses what to do differently.

Attempts are compared by their outcome (`AttemptOutcome`), not by their words: the tree that they made, the failing
tests, the failure's signature. Probes and attempts that wait for a person are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from redstart.core.change import EditKind
from redstart.core.course import AttemptOutcome, CourseChange, CoursePattern, StallLimits, Strategy, Trend
from redstart.core.noun import many
from redstart.core.report import PatchTestResult, digest_of_ids
from redstart.core.run import RunState
from redstart.toolkit.learning.signature import sign

LONG = 3
"""The number of attempts without fewer failing tests that is no accident."""
MISFITS = 2
"""How many of these attempts must lack a usable edit to be no accident either."""
COUNTS = 4
"""How many of the newest counts of failing tests a trend is read from."""
MARKS = 8

_ORDER: dict[CoursePattern, tuple[Strategy, ...]] = {
    CoursePattern.unfit: (Strategy.form, Strategy.stronger, Strategy.hypothesis, Strategy.plan),
    CoursePattern.revisited: (Strategy.plan, Strategy.stronger, Strategy.hypothesis, Strategy.wider),
    CoursePattern.oscillation: (Strategy.both, Strategy.plan, Strategy.stronger, Strategy.hypothesis),
    CoursePattern.regress: (Strategy.restart, Strategy.hypothesis, Strategy.stronger, Strategy.plan),
    CoursePattern.same_signature: (Strategy.wider, Strategy.hypothesis, Strategy.stronger, Strategy.plan),
    CoursePattern.same_test: (Strategy.stronger, Strategy.wider, Strategy.hypothesis, Strategy.plan),
    CoursePattern.no_progress: (Strategy.hypothesis, Strategy.wider, Strategy.stronger, Strategy.plan),
}
"""The strategies against each pattern, best first. Strategies that were used before come after the others."""


class ComparedAttempt(NamedTuple):
    """The parts of an attempt that are compared."""

    number: int
    fingerprint: str
    seen: AttemptOutcome


def repeated(run: RunState) -> int:
    """Count the earlier attempts with the same patch as the current one. 0 if it has no patch."""
    patch = run.now.patch
    if patch is None or not patch.fingerprint:
        return 0
    return sum(attempt.fingerprint == patch.fingerprint for attempt in run.history)


def seen(run: RunState) -> AttemptOutcome:
    """Compute the outcome of the current attempt. Empty if there is nothing to compare."""
    now = run.now
    patch, tested = now.patch, now.test
    waits = bool(now.check and now.check.asks) or bool(tested and tested.verdict.asks)
    if patch is None or patch.probe or waits:
        return AttemptOutcome()
    rejected = now.apply is not None and not now.apply.ok and not now.apply.refused
    plain = AttemptOutcome(base=run.base.tree, unfit=bool(patch.fault) or rejected, form=patch.form, model=patch.model)
    return plain if tested is None or now.apply is None or now.apply.snapshot is None else _tested(plain, run, tested)


def _tested(plain: AttemptOutcome, run: RunState, judged: PatchTestResult) -> AttemptOutcome:
    """Add the test result, without non-target tests that failed before, if the verdict names all the others."""
    found, report = judged.verdict, judged.report
    against = (found.still_red, found.newly_red, found.missing)
    ids = [id_ for group in against for id_ in group.first]
    wrong = sum(group.count for group in against)
    told = next((case for case in report.cases if case.id in ids), None) if ids else None
    signature = ""
    if told is not None and report.signature is not None and told is report.cases[0]:
        signature = report.signature.key
    elif told is not None:
        # The first failing test does not concern this run, so its signature would be meaningless.
        signature = sign(told, is_source=lambda _: False).key
    elif not report.cases:
        signature = report.cause.value
    made = run.now.apply.snapshot if run.now.apply else None
    return plain.model_copy(
        update={
            "tree": made.tree if made else "",
            "failing": digest_of_ids(ids) if wrong == len(ids) else report.failing,
            "signature": signature,
            "tests": tuple(digest_of_ids([id_])[:8] for id_ in ids[:MARKS]),
            "wrong": wrong or None,
        }
    )


def looks(run: RunState) -> list[ComparedAttempt]:
    """List the attempts that are comparable to the current one, which comes last. Empty if it is not comparable."""
    now = seen(run)
    if not now.base:
        return []
    before = [
        ComparedAttempt(entry.number, entry.fingerprint, entry.seen)
        for entry in run.history
        if entry.seen.base == now.base
    ]
    return [*before, ComparedAttempt(run.now.number, run.now.patch.fingerprint if run.now.patch else "", now)]


def start(run: RunState) -> int | None:
    """Count the tests that the run must turn green. None if unknown."""
    return run.now.reproduce.targets.count if run.now.reproduce else None


def trend(run: RunState) -> Trend | None:
    """Compute the trend of the number of tests that fail the patches. None if fewer than two counts are known."""
    found = [look.seen.wrong for look in looks(run) if look.seen.wrong is not None]
    first = start(run)
    counts = ([] if first is None or not found else [first]) + found
    steps = [after - before for before, after in pairwise(counts[-COUNTS:])]
    if not steps:
        return None
    if any(step < 0 for step in steps):
        return Trend.mixed if any(step > 0 for step in steps) else Trend.improving
    return Trend.regressing if any(step > 0 for step in steps) else Trend.stable


def turn(run: RunState) -> CourseChange | None:
    """Find the pattern that the attempts show and a strategy against it. None if the run makes progress."""
    every = looks(run)
    for pattern, find in _PATTERNS.items():
        if every and (shown := find(run, every)):
            return CourseChange(pattern=pattern, strategy=chosen(run, pattern), attempts=shown[-MARKS:])
    if repeated(run):  # A probe is compared with nothing else.
        return CourseChange(pattern=CoursePattern.revisited, strategy=chosen(run, CoursePattern.revisited))
    return None


def chosen(run: RunState, pattern: CoursePattern) -> Strategy:
    """Choose the best strategy that would change something, among those used least often in this run."""
    order = _ORDER[pattern]
    return min((item for item in order if is_open(run, item)), key=lambda item: (run.taken(item), order.index(item)))


def is_open(run: RunState, strategy: Strategy) -> bool:
    """Whether the strategy would change anything."""
    asks, context, patch = run.spec.asks, run.now.retrieve, run.now.patch
    new = run.spec.task.makes_program
    if strategy is Strategy.wider:
        # A brief question shows only the first passage until it is widened.
        found = [chunk for chunk in context.chunks if chunk.source != "test"] if context else []
        hidden = asks.brief and not new and len(found) > 1 + run.taken(Strategy.wider)
        return hidden or (context is not None and context.left_out > 0)
    if strategy is Strategy.stronger:
        writes = patch.model if patch else ""
        return bool(asks.stronger) and writes != asks.stronger and not run.taken(Strategy.stronger)
    if strategy is Strategy.form:
        # A whole file always fits: a model that cannot write a usable one would do worse in any other form.
        return patch is not None and patch.form is not EditKind.whole and not (asks.brief and new)
    # A small model is never asked to plan a new program.
    return strategy is not Strategy.plan or not (asks.brief and new and not run.spec.whole)


def _unfit(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    """Find unfit attempts. If the run gained something between them, the edit form is not the obstacle: none count."""
    last = every[-LONG:]
    bad = tuple(item.number for item in last if item.seen.unfit)
    if not every[-1].seen.unfit or len(bad) < MISFITS or _gained(_best(run, every[:-LONG]), last):
        return ()
    return bad


def _revisited(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    """Find attempts with the same result. A tree whose results differ is flaky, so the run does not go in circles."""
    del run
    *before, now = every
    state = (now.seen.tree, now.seen.failing, now.seen.signature)
    same = [
        item.number
        for item in before
        if (now.fingerprint and item.fingerprint == now.fingerprint)
        or (now.seen.tree and (item.seen.tree, item.seen.failing, item.seen.signature) == state)
    ]
    return (*same, now.number) if same else ()


def _oscillation(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    """Find attempts that alternate. If one set of failing tests contains the other, one attempt is simply better."""
    del run
    keys: tuple[Callable[[ComparedAttempt], str], ...] = (lambda item: item.fingerprint, lambda item: item.seen.tree)
    for key in keys:
        last = every[-3:]
        if len(last) == 3 and all(map(key, last)) and key(last[0]) == key(last[2]) != key(last[1]):
            return tuple(item.number for item in last)
    tested = _since_tested(every)
    last = tested[-3:]
    if len(last) == 3 and last[0].seen.failing == last[2].seen.failing != last[1].seen.failing:
        between, now = set(last[1].seen.tests), set(last[2].seen.tests)
        return tuple(item.number for item in last) if between - now and now - between else ()
    four = [item.seen.signature for item in tested[-4:]]
    alike = len(four) == 4 and len({item.seen.failing for item in tested[-4:]}) == 1 and all(four)
    if alike and four[0] == four[2] != four[1] == four[3]:
        return tuple(item.number for item in tested[-4:])
    return ()


def _regress(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    tested = _since_tested(every)
    if not tested:
        return ()
    before = tested[-2].seen.wrong if len(tested) > 1 else start(run)
    now = tested[-1]
    if before is None or (now.seen.wrong or 0) <= before:
        return ()
    return tuple(item.number for item in tested[-2:])


def _same_signature(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    del run
    last = _since_tested(every)[-2:]
    if len(last) < 2 or not last[1].seen.signature:
        return ()
    first, now = (item.seen for item in last)
    same = (first.failing, first.signature) == (now.failing, now.signature) and first.tree != now.tree
    return tuple(item.number for item in last) if same else ()


def _same_test(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    del run
    last = _since_tested(every)[-LONG:]
    if len(last) < LONG:
        return ()
    common = set(last[0].seen.tests).intersection(*(item.seen.tests for item in last[1:]))
    return tuple(item.number for item in last) if common and not _gained(last[0].seen.wrong, last[1:]) else ()


def _no_progress(run: RunState, every: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    last = every[-LONG:]
    if len(last) < LONG or _gained(_best(run, every[:-LONG]), last):
        return ()
    return tuple(item.number for item in last)


def _best(run: RunState, before: Sequence[ComparedAttempt]) -> int | None:
    """Find the lowest count of failing tests in these attempts and at the start. None if unknown."""
    counts = [start(run), *(item.seen.wrong for item in before)]
    return min((count for count in counts if count is not None), default=None)


def _since_tested(every: Sequence[ComparedAttempt]) -> list[ComparedAttempt]:
    """List the tested attempts. Empty if the current attempt was not tested."""
    return [item for item in every if item.seen.wrong is not None] if every[-1].seen.wrong is not None else []


def _gained(best: int | None, later: Sequence[ComparedAttempt]) -> bool:
    """Whether a later attempt has fewer failing tests than `best`, or, if that is unknown, was tested at all."""
    counts = [item.seen.wrong for item in later if item.seen.wrong is not None]
    return any(best is None or count < best for count in counts)


_PATTERNS: dict[CoursePattern, Callable[[RunState, Sequence[ComparedAttempt]], tuple[int, ...]]] = {
    CoursePattern.unfit: _unfit,
    CoursePattern.oscillation: _oscillation,
    CoursePattern.revisited: _revisited,
    CoursePattern.regress: _regress,
    CoursePattern.same_signature: _same_signature,
    CoursePattern.same_test: _same_test,
    CoursePattern.no_progress: _no_progress,
}
"""The most telling pattern comes first. The first pattern that an attempt shows is reported."""


class BreakerTrip(NamedTuple):
    """A warning or stop because too many attempts brought no progress."""

    words: str
    ends: bool
    """Whether it stops the run or model and is not only a warning."""
    model: str = ""
    """The model whose attempts they were. Empty for all attempts of the run."""


def fruitless(run: RunState, model: str = "") -> int:
    """Count the latest attempts in a row that left no fewer failing tests than the best attempt before them.

    If `model` is given, only its attempts count. Probes and attempts that wait for a person do not count.
    """
    best, count = start(run), 0
    for look in looks(run):
        wrong = look.seen.wrong
        if wrong is not None and (best is None or wrong < best):
            best, count = wrong, 0
        elif not model or look.seen.model == model:
            count += 1
    return count


def broken(run: RunState) -> BreakerTrip | None:
    """Check the stall limits of the run and of the model that wrote the current attempt."""
    limits = run.spec.limits
    writer = run.now.patch.model if run.now.patch else ""
    own = _held(fruitless(run), StallLimits(warning=limits.stall_warning, end=limits.stall))
    stall = run.spec.asks.stalls.get(writer)
    of_model = _held(fruitless(run, writer), stall, writer) if writer and stall else None
    found = [item for item in (own, of_model) if item is not None]
    return max(found, key=lambda item: item.ends, default=None)


def _held(count: int, stall: StallLimits, model: str = "") -> BreakerTrip | None:
    who = f" of {model}" if model else ""
    if stall.end is not None and count >= stall.end:
        return BreakerTrip(f"{many(count, 'attempt')}{who} in a row brought nothing", ends=True, model=model)
    if stall.warning is None or count < stall.warning:
        return None
    then = ""
    if stall.end is not None:
        left = stall.end - count
        then = f"; {many(left, 'more such attempt')}, and {'another model writes, or ' if model else ''}the run ends"
    return BreakerTrip(f"{many(count, 'attempt')}{who} in a row brought nothing{then}", ends=False, model=model)
