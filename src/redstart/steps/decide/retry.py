"""Decide where the next attempt begins, and what it does differently."""

from __future__ import annotations

from redstart.core.course import CourseChange, CoursePattern, Strategy
from redstart.core.noun import clip
from redstart.core.run import Action, Decision, RunState, Step
from redstart.steps.decide.ending import refuted
from redstart.toolkit.honesty.verdict.shortfall import failing_before, failing_tests
from redstart.toolkit.learning.stuck import broken, repeated, trend, turn

_OTHERWISE = {
    Strategy.form: "asking for edits in another form",
    Strategy.plan: "asking for another plan",
    Strategy.both: "asking for one change that is right in both cases",
    Strategy.restart: "starting again from the code before it",
    Strategy.wider: "showing more of the code",
    Strategy.stronger: "asking the strong model",
    Strategy.hypothesis: "asking for another cause",
}
_BEGINS = {Strategy.plan: Step.plan, Strategy.wider: Step.retrieve, Strategy.restart: Step.retrieve}
"""Where an attempt must begin for its strategy to take effect. Other strategies do not change the beginning."""


def again(step: Step, reason: str) -> Decision:
    return Decision(action=Action.retry, reason=reason, next=step)


def retry(run: RunState) -> Decision:
    now = run.now
    if now.reproduce is not None and now.reproduce.trouble:
        return again(Step.reproduce, f"the tests are not usable: {now.reproduce.remedy or now.reproduce.trouble}")
    if now.test is not None and now.test.probe:
        return again(Step.patch, "the snippet that the model asked for was run")
    if now.patch is not None and now.patch.fault:
        return again(Step.patch, now.patch.fault)
    if now.apply is not None and not now.apply.ok:
        return again(Step.patch, "the patch was refused" if now.apply.refused else "the edits did not apply")
    if now.check is not None and (now.check.count or now.check.fault):
        return again(Step.patch, now.check.fault or "the patch adds new findings")
    if reasons := refuted(run):
        return again(Step.patch, f"the patch was refused: {reasons[0]}")
    if now.test is not None and now.test.verdict.asks:
        return again(Step.patch, "the patch changes what only a person may approve")
    return again(Step.retrieve, f"{failing_tests(run)}{failing_before(run)}")


def further(run: RunState) -> Step:
    """Return the step where an unsolved run continues if it gets another attempt."""
    return retry(run).next or Step.patch


def turned(run: RunState, plain: Decision) -> Decision:
    """Change the strategy of a retry if the run goes in circles, and add the trend and the warning for the user."""
    held = broken(run)
    differs = turn(run)
    if held is not None and held.ends:
        differs = CourseChange(pattern=CoursePattern.exhausted, strategy=Strategy.stronger, attempts=(run.now.number,))
    warning = held.words if held and not held.ends else ""
    known = plain.model_copy(update={"trend": trend(run), "warning": warning})
    if differs is None or plain.next is Step.reproduce:
        return known
    why = held.words if held and held.ends else _why(run, differs)
    otherwise = {
        "turn": differs,
        "next": _BEGINS.get(differs.strategy, plain.next),
        "reason": f"{why}: {_OTHERWISE[differs.strategy]}",
    }
    return known.model_copy(update=otherwise)


def _why(run: RunState, turned: CourseChange) -> str:
    """Describe for the user what the attempts show."""
    last = turned.attempts[-1:] or (run.now.number,)
    several = f"attempts {', '.join(map(str, turned.attempts[:-1]))} and {last[0]}"
    first = run.now.test.report.cases[0].id if run.now.test and run.now.test.report.cases else "the same test"
    if turned.pattern is CoursePattern.revisited and not repeated(run):
        return f"other edits made the same code as attempt {turned.attempts[0]}"
    return {
        CoursePattern.unfit: f"{several} gave no usable edit",
        CoursePattern.revisited: "the model proposed the same patch again",
        CoursePattern.oscillation: f"{several} alternated between two failures",
        CoursePattern.regress: "more tests fail than before",
        CoursePattern.same_signature: f"{several} ended in the same failure",
        CoursePattern.same_test: f"{several} left {clip(first, 120)} failing, each in another way",
        CoursePattern.no_progress: f"{several} did not reduce the number of failing tests",
        CoursePattern.exhausted: "",
    }[turned.pattern]
