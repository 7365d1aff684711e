"""Decide which step comes next, and how a step's artifact changes the state. Pure: no clock, no randomness, no I/O.

The table in docs/architecture.md serves as the test of this file.
"""

from __future__ import annotations

from pydantic import BaseModel

from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.learning import Plan, ReflectionPolicy
from redstart.core.progress import CoursePattern, Strategy
from redstart.core.report import ReproductionResult
from redstart.core.run import (
    Action,
    Attempt,
    AttemptSummary,
    Decision,
    Result,
    RetryBase,
    RunState,
    Status,
    Step,
)
from redstart.flow.modes import MODES
from redstart.toolkit.honesty.verdict.set_aside import describe_answer_to_set_aside
from redstart.toolkit.learning.stuck_runs import compute_outcome, has_gained

ACCEPTABLE = (Result.unproven, Result.partial)
"""Results that a person may accept as verified."""
FULL_HISTORY_ATTEMPTS = 3
"""Number of attempts that are kept with everything learned from them."""


def route(state: RunState) -> Step | None:
    """Return the next step; None if the run has ended or waits."""
    if state.status is not Status.running:
        return None
    if state.last is Step.decide and state.now.decide is not None:
        return Step.decide
    if state.last is None or state.last is Step.decide:
        return state.now.entry
    return _find_branch(state, state.last) or _get_next_in_row(state, state.last)


def settle(state: RunState, step: Step, artifact: BaseModel) -> RunState:
    """Add the step's artifact to the state. A decision closes the attempt, and begins the next or ends the run."""
    attempt = _adopt(state.now.model_copy(update={step.value: artifact}))
    updated = state.model_copy(update={"now": attempt, "last": step, "version": state.version + 1})
    if attempt.reproduce is not None and attempt.reproduce.snapshot is not None:
        updated = updated.model_copy(update={"base": attempt.reproduce.snapshot})
    if attempt.check is not None and attempt.check.installed is not None:
        updated = updated.model_copy(update={"installed": attempt.check.installed})
    if isinstance(artifact, ReproductionResult) and (artifact.set_aside or state.set_aside):
        updated = updated.model_copy(update={"set_aside": artifact.set_aside})
    if isinstance(artifact, Plan) and artifact.installed is not None:
        updated = updated.model_copy(update={"installed": artifact.installed})
    if isinstance(artifact, Plan) and artifact.taught is not None:
        updated = updated.model_copy(update={"taught": artifact.taught})
    return _close(_add_child_results(updated, artifact), artifact) if isinstance(artifact, Decision) else updated


def _adopt(attempt: Attempt) -> Attempt:
    """Take over the parts of a candidate's attempt if the decision says so."""
    adopted = attempt.decide.adopted if attempt.decide else None
    if attempt.decide is None or adopted is None:
        return attempt
    return adopted.model_copy(
        update={
            "number": attempt.number,
            "entry": attempt.entry,
            "reproduce": attempt.reproduce,
            "decide": attempt.decide.model_copy(update={"adopted": None}),
        }
    )


def _add_child_results(state: RunState, decision: Decision) -> RunState:
    """Add the results of child runs, and what the decision sets aside, to the state."""
    approved = tuple(dict.fromkeys((*state.approved, *decision.approved)))
    update: dict[str, object] = {"spend": state.spend.add(decision.spent), "approved": approved}
    if decision.set_aside is not None:
        update["set_aside"] = decision.set_aside
    if decision.work is not None:
        update["work"] = decision.work
    if decision.kept is not None:
        update["draft"] = decision.kept
    if decision.installed is not None:
        update["installed"] = decision.installed
    return state.model_copy(update=update)


def is_waiting_for_person(state: RunState) -> bool:
    decision = state.now.decide
    return state.status is Status.needs_input and decision is not None and decision.action is Action.ask


def can_accept_answer(state: RunState) -> bool:
    """Return whether a person may answer: the run waits for that, or it ended with a patch that only they can accept.

    Nobody can accept that tests which no attempt fixed are fixed.
    """
    is_acceptable = state.result in ACCEPTABLE and not state.has_unsolved
    may_be_accepted = state.status is Status.finished and is_acceptable and not state.spec.errand
    return may_be_accepted or is_waiting_for_person(state)


def is_waiting_for_children(state: RunState) -> bool:
    decision = state.now.decide
    return state.status is Status.paused and decision is not None and decision.action is Action.spawn


def wake(state: RunState) -> RunState:
    """Make a run that waits for a person or its child runs ready to decide."""
    return state.model_copy(update={"status": Status.running, "result": None, "reason": ""})


def begin_attempt(state: RunState, entry: Step, *, status: Status = Status.running) -> RunState:
    """Begin the next attempt at `entry`. It keeps the artifacts of the steps before that."""
    attempt, row = state.now, MODES[state.spec.mode]
    artifacts = {step.value: getattr(attempt, step.value) for step in row[: row.index(entry)]}
    if entry is Step.apply:
        artifacts.pop(Step.patch.value)  # the kept edits are applied
    if entry is Step.plan:
        artifacts[Step.reproduce.value] = attempt.reproduce
        if attempt.plan is not None and attempt.plan.asks and attempt.decide is not None and attempt.decide.approved:
            # The approved packages are installed for this plan; the model is not asked for another one.
            artifacts[Step.plan.value] = attempt.plan
    next_attempt = Attempt(number=attempt.number + 1, entry=entry, **artifacts)
    return state.model_copy(
        update={
            "now": next_attempt,
            "history": (*_shorten_history(_with_reflection(state)), _summarize_attempt(state)),
            "draft": _draft(state),
            "conversation": _choose_conversation(state),
            "status": status,
            "last": Step.decide,
            "result": None,
            "reason": "",
        }
    )


def is_out_of_attempts(state: RunState) -> bool:
    return state.tries >= state.spec.limits.attempts


def _find_branch(state: RunState, step: Step) -> Step | None:
    attempt = state.now
    if step is Step.reproduce and attempt.reproduce is not None and attempt.reproduce.trouble:
        return Step.decide
    if step is Step.reproduce and state.spec.candidates is not None:
        return Step.decide
    if step is Step.reproduce and is_continuing_draft(state):
        return Step.apply
    if step is Step.plan and (state.splits or _has_no_aim(state) or (attempt.plan is not None and attempt.plan.asks)):
        return Step.decide
    if step is Step.plan and state.now.reproduce is not None:
        return Step.retrieve
    if step is Step.patch and attempt.patch is not None and not attempt.patch.has_edits:
        return Step.test if attempt.patch.probe else Step.decide
    if step is Step.apply and attempt.apply is not None and not attempt.apply.ok:
        return Step.decide
    if (
        step is Step.check
        and attempt.check is not None
        and (attempt.check.count or attempt.check.fault or attempt.check.asks)
    ):
        return Step.decide
    if step is Step.test:
        return _choose_after_test(state)
    return None


def _has_no_aim(state: RunState) -> bool:
    """Return whether the plan found no improvement that a test could verify."""
    plan = state.now.plan
    chooses = state.spec.task.chooses_goal and state.now.reproduce is None
    return chooses and plan is not None and bool(plan.fault)


def is_continuing_draft(state: RunState) -> bool:
    """Return whether the attempt is about new tests for an existing program, which are run before a model is asked."""
    return state.spec.task.makes_program and state.draft is not None and state.now.entry is Step.reproduce


def _choose_after_test(state: RunState) -> Step:
    if state.now.patch is not None and state.now.patch.probe:
        return Step.decide
    if state.now.test is not None and state.now.test.verdict.asks:
        return Step.decide
    if state.now.test is not None and state.now.test.verdict.is_green:
        return Step.remember
    # There is no retry after the last attempt; with `always`, the reflection is kept for later runs.
    is_last = is_out_of_attempts(state) and state.spec.reflect is not ReflectionPolicy.always
    return Step.remember if is_last else Step.reflect


def _get_next_in_row(state: RunState, step: Step) -> Step:
    row = MODES[state.spec.mode]
    # An audit that an earlier version stored may be at a step that its row no longer has.
    return row[row.index(step) + 1] if step in row else Step.decide


def _close(state: RunState, decision: Decision) -> RunState:
    if decision.action is Action.retry:
        return begin_attempt(state, decision.next or Step.patch)
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
    reflection = state.now.patch.reflection if state.now.patch else None
    attempt_indexes = [number for number, entry in enumerate(state.history) if not entry.probe]
    if reflection is None or not attempt_indexes:
        return state.history
    last_attempt = state.history[attempt_indexes[-1]]
    if last_attempt.reflection is not None and last_attempt.reflection.explains:
        return state.history
    changed = last_attempt.model_copy(update={"reflection": reflection})
    return (*state.history[: attempt_indexes[-1]], changed, *state.history[attempt_indexes[-1] + 1 :])


def _shorten_history(history: tuple[AttemptSummary, ...]) -> tuple[AttemptSummary, ...]:
    """Reduce all but the last few attempts to what tells them apart: prompts show no more, and the state stays
    small."""
    cleared = {"outcome": "", "reflection": None, "files": (), "weak": "", "edits": "", "failure": None}
    old = (entry.model_copy(update=cleared) for entry in history[: 1 - FULL_HISTORY_ATTEMPTS])
    return (*old, *history[1 - FULL_HISTORY_ATTEMPTS :])


def _draft(state: RunState) -> Snapshot | None:
    """Return the next draft: a new program grows with each attempt, a fix with each attempt that gained something."""
    attempt = state.now
    if attempt.test is None or attempt.apply is None:
        return state.draft
    if not state.spec.task.makes_program:
        return _keep_gain(state)
    turn = attempt.decide.turn if attempt.decide else None
    if turn is not None and turn.strategy is Strategy.restart:
        return state.draft if turn.pattern is CoursePattern.regress else None
    return attempt.apply.snapshot


def _choose_conversation(state: RunState) -> str:
    """Return the conversation that the next attempt goes on with; empty if it begins a new one to leave a circle."""
    patch, decision = state.now.patch, state.now.decide
    is_circling = decision is not None and decision.turn is not None
    return "" if patch is None or is_circling else patch.conversation


def _keep_gain(state: RunState) -> Snapshot | None:
    """Return the code that the next attempt at a fix starts from, as decided; None for the original code."""
    decision, applied = state.now.decide, state.now.apply
    if not state.spec.keeps_gain or decision is None or decision.retry_base is None:
        return state.draft
    if decision.retry_base is RetryBase.original:
        return None
    return applied.snapshot if applied is not None and has_gained(state) else state.draft


def _summarize_attempt(state: RunState) -> AttemptSummary:
    attempt = state.now
    patch, applied, test = attempt.patch, attempt.apply, attempt.test
    reflection = attempt.reflect
    if test is not None and test.probe:
        # A probe changes and judges nothing: only its output matters.
        return AttemptSummary(
            number=attempt.number,
            probe=test.probe,
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
        outcome=describe_outcome(attempt),
        problem=patch.problem if patch else None,
        refused=applied.refused if applied else False,
        red=test.report.counts.red if test else None,
        report=test.report.full if test else "",
        signature=test.report.signature.key if test and test.report.signature else "",
        failure=test.report.signature if test else None,
        reflection=reflection,
        weak=test.mutants.words if test and test.mutants and test.mutants.too_many_survive else "",
        reason=clip(attempt.decide.reason, 200) if attempt.decide else "",
        seen=compute_outcome(state),
        turn=attempt.decide.turn if attempt.decide else None,
        waited=_only_waited(attempt),
        asked=bool(attempt.decide and attempt.decide.answered),
    )


def _only_waited(attempt: Attempt) -> bool:
    """Return whether the attempt ended with packages that were approved, or tests that were set aside, and no edit."""
    decision = attempt.decide
    if decision is None or decision.work is not None:
        return False
    only_sets_aside = attempt.patch is not None and attempt.patch.set_aside is not None and not attempt.patch.has_edits
    return bool(decision.approved) or (only_sets_aside and decision.set_aside is not None)


def describe_outcome(attempt: Attempt) -> str:
    """Describe why an attempt did not succeed, in words that help the next one."""
    if attempt.patch is not None and attempt.patch.fault:
        return clip(attempt.patch.fault, 400)
    if claim := describe_answer_to_set_aside(attempt):
        return clip(claim, 600)
    if attempt.apply is not None and not attempt.apply.ok:
        return clip("the edits were not applied: " + attempt.apply.words, 900)
    if attempt.check is not None and (attempt.check.count or attempt.check.fault):
        findings = (f"{item.path}:{item.line} {item.rule} {item.message}" for item in attempt.check.first[:5])
        return clip(attempt.check.fault or "the edits brought new findings: " + "; ".join(findings), 600)
    if attempt.test is not None and attempt.test.verdict.refuted:
        refutations = "; ".join(attempt.test.verdict.refuted)
        return clip(f"the tests pass, but they no longer test the code: {refutations}. Mend the code itself.", 600)
    if attempt.test is not None:
        failures = "; ".join(f"{case.id}: {case.message}" for case in attempt.test.report.cases[:3])
        return clip(attempt.test.report.fault or (f"still red: {failures}" if failures else ""), 900)
    return ""
