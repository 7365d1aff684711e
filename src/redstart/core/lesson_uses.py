"""What a finished run says about the lessons that applied to it, read from its state and stored with its last step."""

from __future__ import annotations

from redstart.core.lesson import LessonOutcome
from redstart.core.run import Result, RunState, Status

_SAYS_NOTHING = (None, Result.environment, Result.already_green, Result.no_tests)
"""Results that no lesson can cause or prevent."""
_MAY_BE_ACCEPTED = (Result.unproven, Result.partial)


def collect_lesson_outcomes(run: RunState) -> dict[str, LessonOutcome]:
    """Collect one outcome for each lesson that was shown or withheld, by lesson ID; empty before the run has ended.

    A run whose result a person may still accept says nothing until the person has done so.
    """
    if run.status is not Status.finished or run.taught is None or run.result in _MAY_BE_ACCEPTED:
        return {}
    is_green, cost = _is_green(run), _cost(run)
    return {
        coin.lesson: LessonOutcome(probability=coin.probability, shown=coin.shown, green=is_green, cost=cost)
        for coin in run.taught.coins
    }


def _is_green(run: RunState) -> bool | None:
    test_result = run.now.test
    is_flaky = test_result is not None and test_result.verdict.flaky.count > 0
    if run.result in _SAYS_NOTHING or (is_flaky and run.result is not Result.verified):
        return None
    return run.result is Result.verified


def _cost(run: RunState) -> float | None:
    """Return the share of the run's token limit that was used; None without a limit."""
    max_tokens = run.spec.limits.tokens
    return min(run.spend.tokens / max_tokens, 1.0) if max_tokens else None
