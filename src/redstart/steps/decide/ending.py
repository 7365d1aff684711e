"""Decide whether an attempt is the last: the limits, the problems that end a run, and the reason to report."""

from __future__ import annotations

from redstart.core.finding import TRIPWIRE
from redstart.core.frozen import format_count
from redstart.core.progress import Strategy
from redstart.core.report import PatchTestResult, ReproductionProblem, ReproductionResult
from redstart.core.run import Action, Decision, Result, RunState
from redstart.toolkit.honesty.verdict.remaining_failures import describe_failing_tests, describe_fix, explain_unproven
from redstart.toolkit.learning.stuck_runs import BreakerTrip, check_stall_limits, count_repeated_patches, is_open

GIVE_UP_AFTER = 2
"""How often the same patch may be repeated."""


def accept(result: Result, reason: str) -> Decision:
    return Decision(action=Action.accept, reason=reason, result=result)


def end(result: Result, reason: str) -> Decision:
    return Decision(action=Action.stop, reason=reason, result=result)


def accept_passing_patch(run: RunState, test_result: PatchTestResult) -> Decision:
    if language := run.foreign_language:
        return accept(Result.unproven, explain_unproven(language))
    return accept(Result.verified, describe_fix(test_result.verdict.fixed.count))


def time_limit_reached(run: RunState) -> str:
    minutes = run.spec.limits.minutes
    if minutes is None or run.spend.seconds < minutes * 60:
        return ""
    return f"the time limit of {minutes:g} minutes is reached"


def limit_reached(run: RunState) -> str:
    limits, spend = run.spec.limits, run.spend
    artifacts = (run.now.patch, run.now.reproduce, run.now.plan)
    if limit := time_limit_reached(run):
        return limit
    if any(artifact.over_budget for artifact in artifacts if artifact is not None):
        return "the next model call could exceed the money, token or time limit"
    if limits.usd is not None and spend.usd >= limits.usd:
        return f"the money limit of ${limits.usd:g} is reached"
    if limits.tokens is not None and spend.tokens >= limits.tokens:
        return f"the limit of {limits.tokens:,} tokens is reached"
    return ""


def can_ask_for_tests(run: RunState, reproduction: ReproductionResult) -> bool:
    problems = (ReproductionProblem.no_tests, ReproductionProblem.already_green)
    return run.spec.task.writes_first_tests and reproduction.trouble in problems


def decide_on_trouble(run: RunState, reproduction: ReproductionResult) -> Decision:
    if run.spec.needs_new_test and (limit := limit_reached(run)):
        return end(Result.capped, limit)
    if reproduction.trouble is ReproductionProblem.already_green:
        return accept(Result.already_green, reproduction.remedy or "all tests pass already: there is nothing to fix")
    if reproduction.trouble in (ReproductionProblem.flaky, ReproductionProblem.no_usable_test):
        return end(Result.unsolved, reproduction.remedy)
    if reproduction.trouble is ReproductionProblem.no_tests:
        return end(Result.no_tests, reproduction.remedy or "no failing test was found")
    return end(Result.environment, reproduction.remedy or "the tests cannot be run")


def stop(run: RunState) -> Decision | None:
    if limit := limit_reached(run):
        return end(Result.capped, limit)
    repeats = count_repeated_patches(run)
    if repeats >= GIVE_UP_AFTER:
        return end(Result.stuck, f"the model proposed the same patch {repeats + 1} times")
    if run.tries < run.spec.limits.attempts:
        trip = check_stall_limits(run)
        return end(Result.stuck, trip.message) if trip and trip.ends and not _has_stronger_model(run, trip) else None
    applied = run.now.apply
    if applied is not None and applied.refused:
        rejections = "; ".join(f"{reject.path}: {reject.reason}" for reject in applied.rejects[:3])
        return end(Result.refused, f"the last patch was refused: {rejections}")
    if reasons := get_refutations(run):
        return end(Result.refused, reasons[0])
    cheats = [item for item in run.now.check.first if item.tool == TRIPWIRE] if run.now.check else []
    if cheats:
        return end(Result.refused, f"the last patch was refused: {cheats[0].path}: {cheats[0].message}")
    return end(Result.unsolved, _describe_unsolved(run))


def get_refutations(run: RunState) -> tuple[str, ...]:
    """Return the evidence that the targets of the attempt no longer test the code."""
    return run.now.test.verdict.refuted if run.now.test else ()


def _describe_unsolved(run: RunState) -> str:
    """Describe what is unsolved when no attempts are left."""
    attempts = format_count(run.tries, "attempt")
    reproduction = run.now.reproduce
    if (
        reproduction is not None
        and can_ask_for_tests(run, reproduction)
        and not any(entry.red is not None for entry in run.history)
    ):
        plan = "no usable plan and " if run.now.plan is not None and run.now.plan.fault else ""
        return f"the model wrote {plan}no usable tests in {attempts}"
    return f"{describe_failing_tests(run)} after {attempts}"


def _has_stronger_model(run: RunState, trip: BreakerTrip) -> bool:
    """Return whether only the current model has reached its stall limit, and a stronger one is available."""
    return bool(trip.model) and is_open(run, Strategy.stronger)
