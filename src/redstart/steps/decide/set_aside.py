"""Decide on failing tests that are set aside: the code is not to blame for them, as a model or Redstart says."""

from __future__ import annotations

from redstart.core.frozen import clip, format_count
from redstart.core.report import PatchTestResult
from redstart.core.run import Action, Decision, Result, RunState, Step
from redstart.core.set_aside import SetAside, SetAsidePolicy, approve, list_unapproved
from redstart.ports.bundle import Ports
from redstart.ports.store.port.person import PersonReply
from redstart.steps.decide.ending import accept, accept_passing_patch, end, stop
from redstart.steps.decide.retry import retry_from
from redstart.toolkit.honesty.verdict.baseline import load_targets
from redstart.toolkit.honesty.verdict.set_aside import add, describe_set_aside, list_set_aside, load_ids, without


def get_lone_claim(run: RunState) -> SetAside | None:
    """Return what the answer of the attempt sets aside if it gives no edits."""
    patch = run.now.patch
    return patch.set_aside if patch is not None and not patch.has_edits else None


def decide_on_claim(run: RunState, ports: Ports, claim: SetAside) -> Decision:
    """Decide on an answer that only names tests that the code is not to blame for.

    A person is asked. If nobody can be asked, the run continues with the other targets.
    """
    if run.spec.set_aside_policy is SetAsidePolicy.ask:
        question = f"the model says that {_name_tests(claim)} fail for another reason than this code: {claim.reason}"
        if claim.ignored:
            question += f" (not among the failing tests: {', '.join(claim.ignored)})"
        return Decision(action=Action.ask, reason=clip(question, 800), result=Result.needs_human, next=Step.patch)
    return _continue_without(run, ports, claim)


def answer_claim(run: RunState, ports: Ports, claim: SetAside, reply: PersonReply) -> Decision:
    """Decide after a person's answer about tests that the model sets aside."""
    if reply.accepts:
        return _continue_without(run, ports, approve((claim,))[0])
    reason = f"you kept as targets: {_name_tests(claim)}. {reply.text}".strip()
    decision = stop(run)
    if decision is not None and decision.result is Result.unsolved:
        return end(Result.unsolved, clip(f"{reason}; no attempts are left", 600))
    return decision or retry_from(Step.patch, clip(reason, 600))


def accept_partly(run: RunState, test_result: PatchTestResult) -> Decision:
    """Accept a patch whose targets pass. Without a person's agreement to what is set aside, the result is partial."""
    entries = list_set_aside(run)
    accepted = accept_passing_patch(run, test_result)
    if not entries or accepted.result is not Result.verified:
        return accepted
    reason = f"{accepted.reason}; {describe_set_aside(entries)}"
    if not list_unapproved(entries):
        return accept(Result.verified, clip(reason, 600))
    if run.spec.set_aside_policy is SetAsidePolicy.ask and run.now.patch is not None and run.now.patch.set_aside:
        question = clip(f"the patch needs your approval: {reason}", 700)
        return Decision(action=Action.ask, reason=question, result=Result.needs_human, next=Step.patch)
    return accept(Result.partial, clip(reason, 600))


def with_approval(run: RunState, decision: Decision) -> Decision:
    """Add a person's agreement to what is set aside, if they accepted the patch."""
    entries = list_set_aside(run)
    if decision.result is not Result.verified or not entries:
        return decision
    return decision.model_copy(update={"set_aside": approve(entries)})


def with_restored_targets(run: RunState, ports: Ports, decision: Decision) -> Decision:
    """Make tests targets again if a patch changed how they fail: then the code does matter for them."""
    changed = run.now.test.verdict.changed if run.now.test else None
    if not changed or not run.set_aside or decision.action is not Action.retry:
        return decision
    remaining = without(run.set_aside, changed.first, ports.blobs)
    return decision.model_copy(update={"set_aside": remaining})


def _continue_without(run: RunState, ports: Ports, claim: SetAside) -> Decision:
    """Continue with the other targets; end if there are none. A model's word alone is no environment problem."""
    remaining = set(load_targets(run, ports.blobs)) - load_ids((claim,), ports.blobs)
    if not remaining:
        agreed = "you agreed that no failing test fails" if claim.approved else "the model says that no test fails"
        result = Result.environment if claim.approved else Result.unsolved
        return end(result, clip(f"{agreed} because of this code: {claim.reason}", 600))
    if (decision := stop(run)) is not None and decision.result is not Result.unsolved:
        return decision
    entries = add(run.set_aside, claim, ports.blobs)
    reason = f"set aside: {_name_tests(claim)}; continuing with {format_count(len(remaining), 'other failing test')}"
    return retry_from(Step.retrieve, clip(reason, 600)).model_copy(update={"set_aside": entries})


def _name_tests(claim: SetAside) -> str:
    more = claim.tests.count - len(claim.tests.first)
    names = ", ".join((*claim.tests.first, *([f"and {more:,} more"] if more else [])))
    return f"{format_count(claim.tests.count, 'failing test')} ({clip(names, 300)})"
