"""The questions to a person, and the decisions that follow from the answers."""

from __future__ import annotations

from redstart.core.finding import Findings
from redstart.core.noun import clip
from redstart.core.report import PatchTestResult
from redstart.core.run import Action, Decision, Result, RunState, Step
from redstart.ports.bundle import Ports
from redstart.ports.store.port.person import PersonReply
from redstart.steps.decide.ending import accept, end, stop
from redstart.steps.decide.retry import again


async def decide_with_person(run: RunState, ports: Ports) -> Decision | None:
    """Ask a person or act on their answer; None if no person is asked."""
    if run.now.decide is not None:
        reply = await ports.person.answer()
        if reply is None:
            return run.now.decide
        return answered(run, run.now.decide, reply).model_copy(update={"answered": True})
    return ask_about_packages(run.now.check) if run.now.check is not None and run.now.check.asks else None


def ask_about_patch(run: RunState) -> Decision:
    """Ask a person about the patch: a test can be wrong, but only a person may say so."""
    proposed = run.now.apply.proposes if run.now.apply else ()
    doubts = run.now.test.verdict.tampered[len(proposed) :] if run.now.test else ()
    question = f"the patch needs your approval: {'; '.join(doubts)}"
    if proposed:
        why = run.now.patch.test_change if run.now.patch else ""
        question = f"the patch changes {', '.join(proposed)}. The model's reason: {why}"
    question = clip(question, 400)
    return Decision(action=Action.ask, reason=question, result=Result.needs_human, next=Step.patch)


def ask_about_packages(found: Findings) -> Decision:
    return Decision(action=Action.ask, reason=found.asks, result=Result.needs_human, next=Step.check)


def answered(run: RunState, asked: Decision, reply: PersonReply) -> Decision:
    """Decide after a person's answer.

    An accepted patch is verified only if its tests pass: no approval makes a failing test pass. After a rejection the
    run retries within its limits; `next` of the question says where the retry begins.
    """
    if asked.next is Step.check and run.now.check is not None:
        return _about_packages(run, asked.next, run.now.check.packages, reply)
    if asked.next is Step.plan and run.now.plan is not None:
        return _about_packages(run, asked.next, run.now.plan.to_approve, reply)
    if not reply.accepts:
        return _rejected(run, asked.next or Step.patch, f"you rejected the patch: {reply.text}")
    if not _green_by_its_tests(run.now.test):
        return end(Result.unsolved, "you accepted the patch, but its tests fail")
    return accept(Result.verified, clip(f"you accepted the patch: {asked.reason}", 400))


def _about_packages(run: RunState, asked_by: Step, packages: tuple[str, ...], reply: PersonReply) -> Decision:
    """Install what a person approved; else ask for another plan, or for another patch."""
    names = ", ".join(name.partition(":")[2] for name in packages)
    if reply.accepts:
        return again(asked_by, f"you approved {names}").model_copy(update={"approved": packages})
    back = Step.plan if asked_by is Step.plan else Step.patch
    return _rejected(run, back, f"you rejected these packages: {names}. {reply.text}")


def _rejected(run: RunState, back: Step, said: str) -> Decision:
    said = clip(said.strip().removesuffix(":"), 400)
    ended = stop(run)
    if ended is not None and ended.result is Result.unsolved:
        return end(Result.unsolved, f"{said}; no attempts are left")
    return ended or again(back, said)


def _green_by_its_tests(judged: PatchTestResult | None) -> bool:
    """Return whether everything that counts against the patch is something a person may approve, such as a changed
    test."""
    if judged is None:
        return False
    found = judged.verdict
    against = (found.still_red, found.newly_red, found.missing, found.flaky, found.unexplained)
    return bool(found.fixed) and not any(against)
