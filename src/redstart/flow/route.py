"""Which step comes next, and how a step's artifact changes the state. Pure: no clock, no randomness, no I/O.

The table in docs/architecture.md serves as the test of this file.
"""

from __future__ import annotations

from pydantic import BaseModel

from redstart.core.change import Snapshot
from redstart.core.course import CoursePattern, Strategy
from redstart.core.learning import Plan, ReflectionPolicy
from redstart.core.noun import clip
from redstart.core.run import Action, Attempt, AttemptSummary, Decision, Result, RunState, Status, Step
from redstart.flow.modes import MODES
from redstart.toolkit.learning.stuck import seen

REMEMBERED = 3
"""Number of attempts that are kept with everything learned from them."""


def route(state: RunState) -> Step | None:
    """Return the next step; None if the run has ended or waits."""
    if state.status is not Status.running:
        return None
    if state.last is Step.decide and state.now.decide is not None:
        return Step.decide
    if state.last is None or state.last is Step.decide:
        return state.now.entry
    return _elsewhere(state, state.last) or _next_in_row(state, state.last)


def settle(state: RunState, step: Step, artifact: BaseModel) -> RunState:
    """Add the step's artifact to the state. A decision closes the attempt, and begins the next or ends the run."""
    now = state.now.model_copy(update={step.value: artifact})
    done = state.model_copy(update={"now": now, "last": step, "version": state.version + 1})
    if now.reproduce is not None and now.reproduce.snapshot is not None:
        done = done.model_copy(update={"base": now.reproduce.snapshot})
    if now.check is not None and now.check.installed is not None:
        done = done.model_copy(update={"installed": now.check.installed})
    if isinstance(artifact, Plan) and artifact.installed is not None:
        done = done.model_copy(update={"installed": artifact.installed})
    if isinstance(artifact, Plan) and artifact.taught is not None:
        done = done.model_copy(update={"taught": artifact.taught})
    return _close(_taken(done, artifact), artifact) if isinstance(artifact, Decision) else done


def _taken(state: RunState, decision: Decision) -> RunState:
    """Add the results of child runs to the state."""
    approved = tuple(dict.fromkeys((*state.approved, *decision.approved)))
    update: dict[str, object] = {"spend": state.spend.plus(decision.spent), "approved": approved}
    if decision.work is not None:
        update["work"] = decision.work
    if decision.kept is not None:
        update["draft"] = decision.kept
    if decision.installed is not None:
        update["installed"] = decision.installed
    return state.model_copy(update=update)


def waits_for_a_person(state: RunState) -> bool:
    asked = state.now.decide
    return state.status is Status.needs_input and asked is not None and asked.action is Action.ask


def takes_answer(state: RunState) -> bool:
    """Return whether a person may answer: the run waits for that, or it ended with a patch that only they can
    accept."""
    may_be_accepted = state.status is Status.finished and state.result is Result.unproven and not state.spec.errand
    return may_be_accepted or waits_for_a_person(state)


def waits_for_errands(state: RunState) -> bool:
    asked = state.now.decide
    return state.status is Status.paused and asked is not None and asked.action is Action.spawn


def wake(state: RunState) -> RunState:
    """Make a run that waits for a person or its child runs ready to decide."""
    return state.model_copy(update={"status": Status.running, "result": None, "reason": ""})


def begin(state: RunState, entry: Step, *, status: Status = Status.running) -> RunState:
    """Begin the next attempt at `entry`. It keeps the artifacts of the steps before that."""
    now, row = state.now, MODES[state.spec.mode]
    kept = {step.value: getattr(now, step.value) for step in row[: row.index(entry)]}
    if entry is Step.plan:
        kept[Step.reproduce.value] = now.reproduce
        if now.plan is not None and now.plan.asks and now.decide is not None and now.decide.approved:
            # The approved packages are installed for this plan; the model is not asked for another one.
            kept[Step.plan.value] = now.plan
    following = Attempt(number=now.number + 1, entry=entry, **kept)
    return state.model_copy(
        update={
            "now": following,
            "history": (*_faded(_with_reflection(state)), _summary(state)),
            "draft": _draft(state),
            "status": status,
            "last": Step.decide,
            "result": None,
            "reason": "",
        }
    )


def out_of_attempts(state: RunState) -> bool:
    return state.tries >= state.spec.limits.attempts


def _elsewhere(state: RunState, last: Step) -> Step | None:
    now = state.now
    if last is Step.reproduce and now.reproduce is not None and now.reproduce.trouble:
        return Step.decide
    if last is Step.reproduce and goes_on_from_draft(state):
        return Step.apply
    if last is Step.plan and (state.splits or _has_no_aim(state) or (now.plan is not None and now.plan.asks)):
        return Step.decide
    if last is Step.plan and state.now.reproduce is not None:
        return Step.retrieve
    if last is Step.patch and now.patch is not None and not now.patch.edits:
        return Step.test if now.patch.probe else Step.decide
    if last is Step.apply and now.apply is not None and not now.apply.ok:
        return Step.decide
    if last is Step.check and now.check is not None and (now.check.count or now.check.fault or now.check.asks):
        return Step.decide
    if last is Step.test:
        return _after_test(state)
    return None


def _has_no_aim(state: RunState) -> bool:
    """Return whether the plan found no improvement that a test could verify."""
    plan = state.now.plan
    chooses = state.spec.task.chooses_goal and state.now.reproduce is None
    return chooses and plan is not None and bool(plan.fault)


def goes_on_from_draft(state: RunState) -> bool:
    """Return whether the attempt is about new tests for an existing program, which are run before a model is asked."""
    return state.spec.task.makes_program and state.draft is not None and state.now.entry is Step.reproduce


def _after_test(state: RunState) -> Step:
    if state.now.patch is not None and state.now.patch.probe:
        return Step.decide
    if state.now.test is not None and state.now.test.verdict.asks:
        return Step.decide
    if state.now.test is not None and state.now.test.verdict.honest_green:
        return Step.remember
    # There is no retry after the last attempt; with `always`, the reflection is kept for later runs.
    is_last = out_of_attempts(state) and state.spec.reflect is not ReflectionPolicy.always
    return Step.remember if is_last else Step.reflect


def _next_in_row(state: RunState, last: Step) -> Step:
    row = MODES[state.spec.mode]
    # An audit that an earlier version stored may be at a step that its row no longer has.
    return row[row.index(last) + 1] if last in row else Step.decide


def _close(state: RunState, decision: Decision) -> RunState:
    if decision.action is Action.retry:
        return begin(state, decision.next or Step.patch)
    waits = {Action.ask: Status.needs_input, Action.spawn: Status.paused}
    return state.model_copy(
        update={
            "status": waits.get(decision.action, Status.finished),
            "result": decision.result,
            "reason": decision.reason,
        }
    )


def _with_reflection(state: RunState) -> tuple[AttemptSummary, ...]:
    """Add the current attempt's reflection on the previous attempt to the history, if no step has explained it."""
    said = state.now.patch.reflection if state.now.patch else None
    tried = [number for number, entry in enumerate(state.history) if not entry.probe]
    if said is None or not tried:
        return state.history
    last = state.history[tried[-1]]
    if last.reflection is not None and last.reflection.explains:
        return state.history
    changed = last.model_copy(update={"reflection": said})
    return (*state.history[: tried[-1]], changed, *state.history[tried[-1] + 1 :])


def _faded(history: tuple[AttemptSummary, ...]) -> tuple[AttemptSummary, ...]:
    """Reduce all but the last few attempts to what tells them apart: prompts show no more, and the state stays
    small."""
    plain = {"outcome": "", "reflection": None, "files": (), "weak": "", "edits": "", "failure": None}
    old = (entry.model_copy(update=plain) for entry in history[: 1 - REMEMBERED])
    return (*old, *history[1 - REMEMBERED :])


def _draft(state: RunState) -> Snapshot | None:
    """Return the next draft: a new program grows with each attempt; a fix starts from the user's code."""
    now = state.now
    if not state.spec.task.makes_program or now.test is None or now.apply is None:
        return state.draft
    turned = now.decide.turn if now.decide else None
    if turned is not None and turned.strategy is Strategy.restart:
        return state.draft if turned.pattern is CoursePattern.regress else None
    return now.apply.snapshot


def _summary(state: RunState) -> AttemptSummary:
    attempt = state.now
    patch, applied, tested = attempt.patch, attempt.apply, attempt.test
    reflection = attempt.reflect
    if tested is not None and tested.probe:
        # A probe changes and judges nothing: only its output matters.
        return AttemptSummary(
            number=attempt.number,
            probe=tested.probe,
            fingerprint=patch.fingerprint if patch else "",
            turn=attempt.decide.turn if attempt.decide else None,
        )
    return AttemptSummary(
        number=attempt.number,
        # A patch that waited for the approval of its packages was not tried: it may come again.
        fingerprint=patch.fingerprint if patch and not (attempt.check and attempt.check.asks) else "",
        diff=applied.diff if applied else "",
        edits=patch.edits if patch and applied and not applied.ok and not applied.refused else "",
        files=patch.files[:10] if patch else (),
        outcome=outcome_in_words(attempt),
        problem=patch.problem if patch else None,
        refused=applied.refused if applied else False,
        red=tested.report.counts.red if tested else None,
        report=tested.report.full if tested else "",
        signature=tested.report.signature.key if tested and tested.report.signature else "",
        failure=tested.report.signature if tested else None,
        reflection=reflection,
        weak=tested.mutants.words if tested and tested.mutants and tested.mutants.too_many_survive else "",
        reason=clip(attempt.decide.reason, 200) if attempt.decide else "",
        seen=seen(state),
        turn=attempt.decide.turn if attempt.decide else None,
        waited=bool(attempt.decide and attempt.decide.approved and attempt.decide.work is None),
        asked=bool(attempt.decide and attempt.decide.answered),
    )


def outcome_in_words(attempt: Attempt) -> str:
    """Describe why an attempt did not succeed, in words that help the next one."""
    if attempt.patch is not None and attempt.patch.fault:
        return clip(attempt.patch.fault, 400)
    if attempt.apply is not None and not attempt.apply.ok:
        return clip("the edits were not applied: " + attempt.apply.words, 900)
    if attempt.check is not None and (attempt.check.count or attempt.check.fault):
        first = (f"{item.path}:{item.line} {item.rule} {item.message}" for item in attempt.check.first[:5])
        return clip(attempt.check.fault or "the edits brought new findings: " + "; ".join(first), 600)
    if attempt.test is not None and attempt.test.verdict.refuted:
        refuted = "; ".join(attempt.test.verdict.refuted)
        return clip(f"the tests pass, but they no longer test the code: {refuted}. Mend the code itself.", 600)
    if attempt.test is not None:
        red = "; ".join(f"{case.id}: {case.message}" for case in attempt.test.report.cases[:3])
        return clip(attempt.test.report.fault or (f"still red: {red}" if red else ""), 900)
    return ""
