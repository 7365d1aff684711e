"""Decide where the next attempt begins, and what it does differently."""

from __future__ import annotations

from redstart.core.frozen import clip, format_count
from redstart.core.progress import CourseChange, CoursePattern, Strategy
from redstart.core.run import Action, Decision, RetryBase, RunState, Step
from redstart.steps.decide.ending import get_refutations
from redstart.toolkit.honesty.verdict.remaining_failures import describe_failing_before, describe_failing_tests
from redstart.toolkit.learning.stuck_runs import (
    check_stall_limits,
    compute_outcome,
    compute_trend,
    count_failing_at_start,
    count_repeated_patches,
    has_gained,
    turn,
)

_STRATEGY_TEXTS = {
    Strategy.form: "asking for edits in another form",
    Strategy.plan: "asking for another plan",
    Strategy.both: "asking for one change that is right in both cases",
    Strategy.restart: "starting again from the code before it",
    Strategy.wider: "showing more of the code",
    Strategy.stronger: "asking the strong model",
    Strategy.hypothesis: "asking for another cause",
}
_FIRST_STEPS = {Strategy.plan: Step.plan, Strategy.wider: Step.retrieve, Strategy.restart: Step.retrieve}
"""Where an attempt must begin for its strategy to take effect. Other strategies do not change the beginning."""


def retry_from(step: Step, reason: str) -> Decision:
    return Decision(action=Action.retry, reason=reason, next=step)


def retry(run: RunState) -> Decision:
    attempt = run.now
    if attempt.reproduce is not None and attempt.reproduce.trouble:
        return retry_from(
            Step.reproduce, f"the tests are not usable: {attempt.reproduce.remedy or attempt.reproduce.trouble}"
        )
    if attempt.test is not None and attempt.test.probe:
        return retry_from(Step.patch, "the snippet that the model asked for was run")
    if attempt.patch is not None and attempt.patch.fault:
        return retry_from(Step.patch, attempt.patch.fault)
    if attempt.apply is not None and not attempt.apply.ok:
        return retry_from(Step.patch, "the patch was refused" if attempt.apply.refused else "the edits did not apply")
    if attempt.check is not None and (attempt.check.count or attempt.check.fault):
        return retry_from(Step.patch, attempt.check.fault or "the patch adds new findings")
    if reasons := get_refutations(run):
        return retry_from(Step.patch, f"the patch was refused: {reasons[0]}")
    if attempt.test is not None and attempt.test.verdict.asks:
        return retry_from(Step.patch, "the patch changes what only a person may approve")
    return retry_from(Step.retrieve, f"{describe_failing_tests(run)}{describe_failing_before(run)}")


def get_next_step(run: RunState) -> Step:
    """Return the step where an unsolved run continues if it gets another attempt."""
    return retry(run).next or Step.patch


def change_course(run: RunState, decision: Decision) -> Decision:
    """Change the strategy of a retry if the run goes in circles, and add the trend and the warning for the user."""
    trip = check_stall_limits(run)
    course = turn(run)
    if trip is not None and trip.ends:
        course = CourseChange(pattern=CoursePattern.exhausted, strategy=Strategy.stronger, attempts=(run.now.number,))
    warning = trip.message if trip and not trip.ends else ""
    updated = decision.model_copy(update={"trend": compute_trend(run), "warning": warning, **_choose_base(run, course)})
    if course is None or decision.next is Step.reproduce:
        return updated
    reason = trip.message if trip and trip.ends else _explain_course(run, course)
    changes = {
        "turn": course,
        "next": _FIRST_STEPS.get(course.strategy, decision.next),
        "reason": f"{reason}: {_STRATEGY_TEXTS[course.strategy]}",
    }
    return updated.model_copy(update=changes)


def _choose_base(run: RunState, course: CourseChange | None) -> dict[str, object]:
    """Choose the code that the next attempt at a fix starts from, and say why."""
    if not run.spec.keeps_gain or run.spec.task.makes_program or run.now.test is None or run.now.test.probe:
        return {}
    if course is not None and course.strategy is Strategy.plan:
        return _name_base(RetryBase.original, "another plan starts from the original code")
    if has_gained(run):
        before, left = count_failing_at_start(run) or 0, compute_outcome(run).wrong or 0
        gained = format_count(before - left, "test")
        return _name_base(RetryBase.patched, f"this patch fixed {gained} and broke none")
    if run.draft is not None:
        return _name_base(RetryBase.patched, "this patch gained nothing, but an earlier one did")
    return _name_base(RetryBase.original, "no patch has fixed a test without breaking another")


def _name_base(base: RetryBase, reason: str) -> dict[str, object]:
    return {"retry_base": base, "retry_base_reason": reason}


def _explain_course(run: RunState, course: CourseChange) -> str:
    """Describe for the user what the attempts show."""
    last = course.attempts[-1:] or (run.now.number,)
    attempt_names = f"attempts {', '.join(map(str, course.attempts[:-1]))} and {last[0]}"
    first_test = run.now.test.report.cases[0].id if run.now.test and run.now.test.report.cases else "the same test"
    if course.pattern is CoursePattern.revisited and not count_repeated_patches(run):
        return f"other edits made the same code as attempt {course.attempts[0]}"
    return {
        CoursePattern.unfit: f"{attempt_names} gave no usable edit",
        CoursePattern.revisited: "the model proposed the same patch again",
        CoursePattern.oscillation: f"{attempt_names} alternated between two failures",
        CoursePattern.regress: "more tests fail than before",
        CoursePattern.same_signature: f"{attempt_names} ended in the same failure",
        CoursePattern.same_test: f"{attempt_names} left {clip(first_test, 120)} failing, each in another way",
        CoursePattern.no_progress: f"{attempt_names} did not reduce the number of failing tests",
        CoursePattern.exhausted: "",
    }[course.pattern]
