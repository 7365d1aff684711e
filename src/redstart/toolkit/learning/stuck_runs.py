"""Detect that a run goes in circles, at the first attempt that shows it, and choose what to do differently.

Attempts are compared by their outcome (`AttemptOutcome`), not by their words: the tree that they made, the failing
tests, the failure's signature. Probes and attempts that wait for a person are not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from redstart.core.change import EditKind
from redstart.core.frozen import format_count
from redstart.core.progress import AttemptOutcome, CourseChange, CoursePattern, StallLimits, Strategy, Trend
from redstart.core.report import PatchTestResult, compute_ids_digest
from redstart.core.run import RunState
from redstart.toolkit.learning.signature import sign

LONG = 3
"""The number of attempts without fewer failing tests that is no accident."""
MISFITS = 2
"""How many of these attempts must lack a usable edit to be no accident either."""
TREND_LENGTH = 4
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
    outcome: AttemptOutcome


def count_repeated_patches(run: RunState) -> int:
    """Count the earlier attempts with the same patch as the current one. 0 if it has no patch."""
    patch = run.now.patch
    if patch is None or not patch.fingerprint:
        return 0
    return sum(attempt.fingerprint == patch.fingerprint for attempt in run.history)


def compute_outcome(run: RunState) -> AttemptOutcome:
    """Compute the outcome of the current attempt. Empty if there is nothing to compare."""
    attempt = run.now
    patch, result = attempt.patch, attempt.test
    waits = bool(attempt.check and attempt.check.asks) or bool(result and result.verdict.asks)
    if patch is None or patch.probe or waits:
        return AttemptOutcome()
    rejected = attempt.apply is not None and not attempt.apply.ok and not attempt.apply.refused
    outcome = AttemptOutcome(
        base=run.base.tree, unfit=bool(patch.fault) or rejected, form=patch.form, model=patch.model
    )
    return (
        outcome
        if result is None or attempt.apply is None or attempt.apply.snapshot is None
        else _add_test_result(outcome, run, result)
    )


def _add_test_result(outcome: AttemptOutcome, run: RunState, result: PatchTestResult) -> AttemptOutcome:
    """Add the test result, without non-target tests that failed before, if the verdict names all the others."""
    verdict, report = result.verdict, result.report
    failing_groups = (verdict.still_red, verdict.newly_red, verdict.missing)
    ids = [id_ for group in failing_groups for id_ in group.first]
    failing_count = sum(group.count for group in failing_groups)
    failing_case = next((case for case in report.cases if case.id in ids), None) if ids else None
    signature = ""
    if failing_case is not None and report.signature is not None and failing_case is report.cases[0]:
        signature = report.signature.key
    elif failing_case is not None:
        # The first failing test does not concern this run, so its signature would be meaningless.
        signature = sign(failing_case, is_source=lambda _: False).key
    elif not report.cases:
        signature = report.cause.value
    snapshot = run.now.apply.snapshot if run.now.apply else None
    return outcome.model_copy(
        update={
            "tree": snapshot.tree if snapshot else "",
            "failing": compute_ids_digest(ids) if failing_count == len(ids) else report.failing,
            "signature": signature,
            "tests": tuple(compute_ids_digest([id_])[:8] for id_ in ids[:MARKS]),
            "wrong": failing_count or None,
        }
    )


def list_comparable_attempts(run: RunState) -> list[ComparedAttempt]:
    """List the attempts that are comparable to the current one, which comes last. Empty if it is not comparable."""
    outcome = compute_outcome(run)
    if not outcome.base:
        return []
    earlier = [
        ComparedAttempt(entry.number, entry.fingerprint, entry.seen)
        for entry in run.history
        if entry.seen.base == outcome.base
    ]
    return [*earlier, ComparedAttempt(run.now.number, run.now.patch.fingerprint if run.now.patch else "", outcome)]


def start(run: RunState) -> int | None:
    """Count the tests that the run must turn green. None if unknown."""
    return run.now.reproduce.targets.count if run.now.reproduce else None


def compute_trend(run: RunState) -> Trend | None:
    """Compute the trend of the number of tests that fail the patches. None if fewer than two counts are known."""
    known_counts = [
        attempt.outcome.wrong for attempt in list_comparable_attempts(run) if attempt.outcome.wrong is not None
    ]
    initial = start(run)
    counts = ([] if initial is None or not known_counts else [initial]) + known_counts
    steps = [after - before for before, after in pairwise(counts[-TREND_LENGTH:])]
    if not steps:
        return None
    if any(step < 0 for step in steps):
        return Trend.mixed if any(step > 0 for step in steps) else Trend.improving
    return Trend.regressing if any(step > 0 for step in steps) else Trend.stable


def count_failing_at_start(run: RunState) -> int | None:
    """Count the tests that failed in the code that the current attempt started from. None if unknown."""
    if run.draft is None:
        return start(run)
    return run.kept_attempt.seen.wrong if run.kept_attempt else None


def has_gained(run: RunState) -> bool:
    """Return whether the current attempt leaves fewer tests failing than the code it started from, and broke none."""
    failing_count, earlier_count = compute_outcome(run).wrong, count_failing_at_start(run)
    if run.now.test is None or failing_count is None or earlier_count is None or failing_count >= earlier_count:
        return False
    verdict = run.now.test.verdict
    broken = (verdict.newly_red, verdict.missing, verdict.newly_skipped)
    return not any(broken) and not (verdict.refuted or verdict.tampered or verdict.unexplained)


def turn(run: RunState) -> CourseChange | None:
    """Find the pattern that the attempts show and a strategy against it. None if the run makes progress."""
    attempts = list_comparable_attempts(run)
    for pattern, find in _PATTERNS.items():
        if attempts and (numbers := find(run, attempts)):
            return CourseChange(pattern=pattern, strategy=choose_strategy(run, pattern), attempts=numbers[-MARKS:])
    if count_repeated_patches(run):  # A probe is compared with nothing else.
        return CourseChange(pattern=CoursePattern.revisited, strategy=choose_strategy(run, CoursePattern.revisited))
    return None


def choose_strategy(run: RunState, pattern: CoursePattern) -> Strategy:
    """Choose the best strategy that would change something, among those used least often in this run."""
    order = _ORDER[pattern]
    return min(
        (item for item in order if is_open(run, item)),
        key=lambda item: (run.count_strategy_uses(item), order.index(item)),
    )


def is_open(run: RunState, strategy: Strategy) -> bool:
    """Whether the strategy would change anything."""
    options, context, patch = run.spec.asks, run.now.retrieve, run.now.patch
    new = run.spec.task.makes_program
    if strategy is Strategy.wider:
        # A brief question shows only the first passage until it is widened.
        chunks = [chunk for chunk in context.chunks if chunk.source != "test"] if context else []
        has_hidden = options.brief and not new and len(chunks) > 1 + run.count_strategy_uses(Strategy.wider)
        return has_hidden or (context is not None and context.left_out > 0)
    if strategy is Strategy.stronger:
        writer = patch.model if patch else ""
        return bool(options.stronger) and writer != options.stronger and not run.count_strategy_uses(Strategy.stronger)
    if strategy is Strategy.form:
        # A whole file always fits: a model that cannot write a usable one would do worse in any other form.
        return patch is not None and patch.form is not EditKind.whole and not (options.brief and new)
    # A small model is never asked to plan a new program.
    return strategy is not Strategy.plan or not (options.brief and new and not run.spec.program_goal)


def _find_unfit(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    """Find unfit attempts. If the run gained something between them, the edit form is not the obstacle: none count."""
    recent = attempts[-LONG:]
    unfit = tuple(item.number for item in recent if item.outcome.unfit)
    if (
        not attempts[-1].outcome.unfit
        or len(unfit) < MISFITS
        or _has_improved(_find_best_count(run, attempts[:-LONG]), recent)
    ):
        return ()
    return unfit


def _find_revisited(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    """Find attempts with the same result. A tree whose results differ is flaky, so the run does not go in circles."""
    del run
    *earlier, current = attempts
    state = (current.outcome.tree, current.outcome.failing, current.outcome.signature)
    matching = [
        item.number
        for item in earlier
        if (current.fingerprint and item.fingerprint == current.fingerprint)
        or (current.outcome.tree and (item.outcome.tree, item.outcome.failing, item.outcome.signature) == state)
    ]
    return (*matching, current.number) if matching else ()


def _find_oscillation(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    """Find attempts that alternate. If one set of failing tests contains the other, one attempt is simply better."""
    del run
    keys: tuple[Callable[[ComparedAttempt], str], ...] = (lambda item: item.fingerprint, lambda item: item.outcome.tree)
    for key in keys:
        recent = attempts[-3:]
        if len(recent) == 3 and all(map(key, recent)) and key(recent[0]) == key(recent[2]) != key(recent[1]):
            return tuple(item.number for item in recent)
    tested = _list_tested(attempts)
    recent = tested[-3:]
    if len(recent) == 3 and recent[0].outcome.failing == recent[2].outcome.failing != recent[1].outcome.failing:
        between, latest = set(recent[1].outcome.tests), set(recent[2].outcome.tests)
        return tuple(item.number for item in recent) if between - latest and latest - between else ()
    four = [item.outcome.signature for item in tested[-4:]]
    alike = len(four) == 4 and len({item.outcome.failing for item in tested[-4:]}) == 1 and all(four)
    if alike and four[0] == four[2] != four[1] == four[3]:
        return tuple(item.number for item in tested[-4:])
    return ()


def _find_regression(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    tested = _list_tested(attempts)
    if not tested:
        return ()
    previous_count = tested[-2].outcome.wrong if len(tested) > 1 else start(run)
    latest = tested[-1]
    if previous_count is None or (latest.outcome.wrong or 0) <= previous_count:
        return ()
    return tuple(item.number for item in tested[-2:])


def _find_same_signature(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    del run
    recent = _list_tested(attempts)[-2:]
    if len(recent) < 2 or not recent[1].outcome.signature:
        return ()
    previous, latest = (item.outcome for item in recent)
    is_same = (previous.failing, previous.signature) == (
        latest.failing,
        latest.signature,
    ) and previous.tree != latest.tree
    return tuple(item.number for item in recent) if is_same else ()


def _find_same_test(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    del run
    recent = _list_tested(attempts)[-LONG:]
    if len(recent) < LONG:
        return ()
    common_tests = set(recent[0].outcome.tests).intersection(*(item.outcome.tests for item in recent[1:]))
    return (
        tuple(item.number for item in recent)
        if common_tests and not _has_improved(recent[0].outcome.wrong, recent[1:])
        else ()
    )


def _find_no_progress(run: RunState, attempts: Sequence[ComparedAttempt]) -> tuple[int, ...]:
    recent = attempts[-LONG:]
    if len(recent) < LONG or _has_improved(_find_best_count(run, attempts[:-LONG]), recent):
        return ()
    return tuple(item.number for item in recent)


def _find_best_count(run: RunState, earlier: Sequence[ComparedAttempt]) -> int | None:
    """Find the lowest count of failing tests in these attempts and at the start. None if unknown."""
    counts = [start(run), *(item.outcome.wrong for item in earlier)]
    return min((count for count in counts if count is not None), default=None)


def _list_tested(attempts: Sequence[ComparedAttempt]) -> list[ComparedAttempt]:
    """List the tested attempts. Empty if the current attempt was not tested."""
    return (
        [item for item in attempts if item.outcome.wrong is not None] if attempts[-1].outcome.wrong is not None else []
    )


def _has_improved(best_count: int | None, later: Sequence[ComparedAttempt]) -> bool:
    """Whether a later attempt has fewer failing tests than `best_count`, or, if that is unknown, was tested at all."""
    counts = [item.outcome.wrong for item in later if item.outcome.wrong is not None]
    return any(best_count is None or count < best_count for count in counts)


_PATTERNS: dict[CoursePattern, Callable[[RunState, Sequence[ComparedAttempt]], tuple[int, ...]]] = {
    CoursePattern.unfit: _find_unfit,
    CoursePattern.oscillation: _find_oscillation,
    CoursePattern.revisited: _find_revisited,
    CoursePattern.regress: _find_regression,
    CoursePattern.same_signature: _find_same_signature,
    CoursePattern.same_test: _find_same_test,
    CoursePattern.no_progress: _find_no_progress,
}
"""The most telling pattern comes first. The first pattern that an attempt shows is reported."""


class BreakerTrip(NamedTuple):
    """A warning or stop because too many attempts brought no progress."""

    message: str
    ends: bool
    """Whether it stops the run or model and is not only a warning."""
    model: str = ""
    """The model whose attempts they were. Empty for all attempts of the run."""


def count_fruitless(run: RunState, model: str = "") -> int:
    """Count the latest attempts in a row that left no fewer failing tests than the best attempt before them.

    If `model` is given, only its attempts count. Probes and attempts that wait for a person do not count.
    """
    best_count, count = start(run), 0
    for attempt in list_comparable_attempts(run):
        failing_count = attempt.outcome.wrong
        if failing_count is not None and (best_count is None or failing_count < best_count):
            best_count, count = failing_count, 0
        elif not model or attempt.outcome.model == model:
            count += 1
    return count


def check_stall_limits(run: RunState) -> BreakerTrip | None:
    """Check the stall limits of the run and of the model that wrote the current attempt."""
    limits = run.spec.limits
    writer = run.now.patch.model if run.now.patch else ""
    run_trip = _create_trip(count_fruitless(run), StallLimits(warning=limits.stall_warning, end=limits.stall))
    model_limits = run.spec.asks.stalls.get(writer)
    model_trip = _create_trip(count_fruitless(run, writer), model_limits, writer) if writer and model_limits else None
    trips = [item for item in (run_trip, model_trip) if item is not None]
    return max(trips, key=lambda item: item.ends, default=None)


def _create_trip(count: int, limits: StallLimits, model: str = "") -> BreakerTrip | None:
    model_part = f" of {model}" if model else ""
    if limits.end is not None and count >= limits.end:
        return BreakerTrip(
            f"{format_count(count, 'attempt')}{model_part} in a row brought nothing", ends=True, model=model
        )
    if limits.warning is None or count < limits.warning:
        return None
    consequence = ""
    if limits.end is not None:
        remaining = limits.end - count
        consequence = (
            f"; {format_count(remaining, 'more such attempt')}, and "
            f"{'another model writes, or ' if model else ''}the run ends"
        )
    return BreakerTrip(
        f"{format_count(count, 'attempt')}{model_part} in a row brought nothing{consequence}", ends=False, model=model
    )
