"""The questions to a person, and the decisions that follow from the answers."""

from __future__ import annotations

from redstart.core.finding import Findings
from redstart.core.frozen import clip
from redstart.core.report import PatchTestResult
from redstart.core.run import Action, Decision, Result, RunState, Step
from redstart.ports.bundle import Ports
from redstart.ports.store.port.person import PersonReply
from redstart.steps.decide.ending import accept, end, stop
from redstart.steps.decide.retry import retry_from
from redstart.steps.decide.set_aside import answer_claim, get_lone_claim, with_approval
from redstart.toolkit.honesty.verdict.set_aside import describe_set_aside, list_set_aside


async def decide_with_person(run: RunState, ports: Ports) -> Decision | None:
    """Ask a person or act on their answer; None if no person is asked."""
    if run.now.decide is not None:
        reply = await ports.person.answer()
        if reply is None:
            return run.now.decide
        if claim := get_lone_claim(run):
            decision = answer_claim(run, ports, claim, reply)
        else:
            decision = with_approval(run, decide_after_answer(run, run.now.decide, reply))
        return decision.model_copy(update={"answered": True})
    return ask_about_packages(run.now.check) if run.now.check is not None and run.now.check.asks else None


def ask_about_patch(run: RunState) -> Decision:
    """Ask a person about the patch: a test can be wrong, but only a person may say so."""
    proposed_paths = run.now.apply.proposes if run.now.apply else ()
    doubts = run.now.test.verdict.tampered[len(proposed_paths) :] if run.now.test else ()
    question = f"the patch needs your approval: {'; '.join(doubts)}"
    if proposed_paths:
        reason = run.now.patch.test_change if run.now.patch else ""
        question = f"the patch changes {', '.join(proposed_paths)}. The model's reason: {reason}"
    if entries := list_set_aside(run):
        question = f"{question}; {describe_set_aside(entries)}"
    question = clip(question, 400)
    return Decision(action=Action.ask, reason=question, result=Result.needs_human, next=Step.patch)


def ask_about_packages(findings: Findings) -> Decision:
    return Decision(action=Action.ask, reason=findings.asks, result=Result.needs_human, next=Step.check)


def decide_after_answer(run: RunState, question: Decision, reply: PersonReply) -> Decision:
    """Decide after a person's answer.

    An accepted patch is verified only if its tests pass: no approval makes a failing test pass. After a rejection the
    run retries within its limits; `next` of the question says where the retry begins.
    """
    if question.next is Step.check and run.now.check is not None:
        return _decide_on_packages(run, question.next, run.now.check.packages, reply)
    if question.next is Step.plan and run.now.plan is not None:
        return _decide_on_packages(run, question.next, run.now.plan.to_approve, reply)
    if not reply.accepts:
        return _retry_after_rejection(run, question.next or Step.patch, f"you rejected the patch: {reply.text}")
    if not _is_approvable(run.now.test):
        return end(Result.unsolved, "you accepted the patch, but its tests fail")
    return accept(Result.verified, clip(f"you accepted the patch: {question.reason}", 400))


def _decide_on_packages(run: RunState, step: Step, packages: tuple[str, ...], reply: PersonReply) -> Decision:
    """Install what a person approved; else ask for another plan, or for another patch."""
    names = ", ".join(name.partition(":")[2] for name in packages)
    if reply.accepts:
        return retry_from(step, f"you approved {names}").model_copy(update={"approved": packages})
    next_step = Step.plan if step is Step.plan else Step.patch
    return _retry_after_rejection(run, next_step, f"you rejected these packages: {names}. {reply.text}")


def _retry_after_rejection(run: RunState, next_step: Step, reason: str) -> Decision:
    reason = clip(reason.strip().removesuffix(":"), 400)
    decision = stop(run)
    if decision is not None and decision.result is Result.unsolved:
        return end(Result.unsolved, f"{reason}; no attempts are left")
    return decision or retry_from(next_step, reason)


def _is_approvable(test_result: PatchTestResult | None) -> bool:
    """Return whether everything that counts against the patch is something a person may approve, such as a changed
    test."""
    if test_result is None:
        return False
    verdict = test_result.verdict
    blockers = (verdict.still_red, verdict.newly_red, verdict.missing, verdict.flaky, verdict.changed)
    return bool(verdict.fixed) and not any(blockers) and not verdict.unexplained
