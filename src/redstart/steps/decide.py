"""Retry, accept or stop. Holds the limits; the reason it gives is what the user reads."""

from __future__ import annotations

from redstart.core.chat import Fault
from redstart.core.finding import TRIPWIRE
from redstart.core.noun import clip
from redstart.core.report import Judged, Reproduced
from redstart.core.run import Action, Decision, Mode, Result, RunState, Step
from redstart.ports.bundle import Ports
from redstart.ports.store.port import Reply
from redstart.toolkit.learning.stuck import repeated

GIVE_UP_AFTER = 2
"""How often the same patch may come again."""


async def decide(run: RunState, ports: Ports) -> Decision:
    if run.now.decide is not None:
        reply = await ports.person.answer()
        return run.now.decide if reply is None else answered(run, run.now.decide, reply)
    found = run.now.reproduce
    if found is not None and found.trouble and not _may_ask_again(run, found):
        return _trouble(found)
    if run.now.test is not None and run.now.test.verdict.honest_green:
        fixed = run.now.test.verdict.fixed.count
        tests = "test is" if fixed == 1 else "tests are"
        return _accept(Result.verified, f"{fixed} red {tests} green, and nothing else got worse")
    if run.now.test is not None and run.now.test.verdict.asks:
        return _ask(run)
    return _stop(run) or _retry(run)


def _ask(run: RunState) -> Decision:
    """A test can be wrong, but only a person may say so."""
    proposed = run.now.apply.proposes if run.now.apply else ()
    doubts = run.now.test.verdict.tampered[len(proposed) :] if run.now.test else ()
    question = f"is this right? {'; '.join(doubts)}"
    if proposed:
        why = run.now.patch.test_change if run.now.patch else ""
        question = f"may {', '.join(proposed)} be changed? The model says: {why}"
    question = clip(question, 400)
    return Decision(action=Action.ask, reason=question, result=Result.needs_human, next=Step.patch)


def answered(run: RunState, asked: Decision, reply: Reply) -> Decision:
    """What a person's answer leads to.

    A patch that they accept is verified only if its tests are green: nobody's word makes a red test so. One that they
    reject is tried otherwise, while the limits leave an attempt; `asked.next` says where that begins.
    """
    if not reply.accepts:
        said = clip(f"you rejected it: {reply.text}" if reply.text else "you rejected it", 400)
        ended = _stop(run)
        if ended is not None and ended.result is Result.unsolved:
            return _end(Result.unsolved, f"{said}; no attempt is left")
        return ended or _again(asked.next or Step.patch, said)
    if not _green_by_its_tests(run.now.test):
        return _end(Result.unsolved, "you accepted it, but its tests are not green")
    return _accept(Result.verified, clip(f"you accepted it: {asked.reason}", 400))


def _green_by_its_tests(judged: Judged | None) -> bool:
    """Whether all that speaks against the patch is what a person may take upon themselves, such as a changed test."""
    if judged is None:
        return False
    found = judged.verdict
    against = (found.still_red, found.newly_red, found.missing, found.flaky, found.unexplained)
    return bool(found.fixed) and not any(against)


def further(run: RunState) -> Step:
    """Where a run that ended red goes on if it is given another attempt."""
    return _retry(run).next or Step.patch


def _may_ask_again(run: RunState, found: Reproduced) -> bool:
    return run.spec.mode is Mode.create and found.trouble in ("no_tests", "already_green")


def _trouble(found: Reproduced) -> Decision:
    if found.trouble == "already_green":
        return _accept(Result.already_green, found.remedy or "every test is green already: there is nothing to fix")
    if found.trouble == "flaky":
        return _end(Result.unsolved, found.remedy)
    if found.trouble == "no_tests":
        return _end(Result.no_tests, found.remedy or "no failing test was found")
    return _end(Result.environment, found.remedy or "the tests could not be run")


def _stop(run: RunState) -> Decision | None:
    if cap := _cap(run):
        return _end(Result.capped, cap)
    again = repeated(run)
    if again >= GIVE_UP_AFTER:
        return _end(Result.stuck, f"the same patch came {again + 1} times")
    if run.tries < run.spec.limits.iterations:
        return None
    applied = run.now.apply
    if applied is not None and applied.refused:
        named = "; ".join(f"{reject.path}: {reject.reason}" for reject in applied.rejects[:3])
        return _end(Result.refused, f"the last attempt was refused: {named}")
    cheats = [one for one in run.now.check.first if one.tool == TRIPWIRE] if run.now.check else []
    if cheats:
        return _end(Result.refused, f"the last attempt was refused: {cheats[0].path}: {cheats[0].message}")
    attempts = "1 attempt" if run.tries == 1 else f"{run.tries} attempts"
    return _end(Result.unsolved, f"still red after {attempts}")


def _cap(run: RunState) -> str:
    limits, spend = run.spec.limits, run.spend
    faults = (run.now.patch.fault if run.now.patch else "", run.now.reproduce.remedy if run.now.reproduce else "")
    if any(fault.endswith(Fault.budget.value) for fault in faults):
        return "the next model call could go past the money or token cap"
    if limits.minutes is not None and spend.seconds >= limits.minutes * 60:
        return f"the time cap of {limits.minutes:g} minutes is used up"
    if limits.usd is not None and spend.usd >= limits.usd:
        return f"the money cap of ${limits.usd:g} is used up"
    if limits.tokens is not None and spend.tokens >= limits.tokens:
        return f"the cap of {limits.tokens} tokens is used up"
    return ""


def _retry(run: RunState) -> Decision:
    now = run.now
    if now.reproduce is not None and now.reproduce.trouble:
        return _again(Step.reproduce, f"the tests were not usable: {now.reproduce.remedy or now.reproduce.trouble}")
    if repeated(run):
        return _again(Step.plan, "the same patch came again: another plan is asked for")
    if now.test is not None and now.test.probe:
        return _again(Step.patch, "what it wanted to know was run")
    if now.patch is not None and now.patch.fault:
        return _again(Step.patch, now.patch.fault)
    if now.apply is not None and not now.apply.ok:
        return _again(Step.patch, "refused by policy" if now.apply.refused else "the edits did not apply")
    if now.check is not None and (now.check.count or now.check.fault):
        return _again(Step.patch, now.check.fault or "the edits brought new findings")
    return _again(Step.retrieve, "still red")


def _again(step: Step, reason: str) -> Decision:
    return Decision(action=Action.retry, reason=reason, next=step)


def _accept(result: Result, reason: str) -> Decision:
    return Decision(action=Action.accept, reason=reason, result=result)


def _end(result: Result, reason: str) -> Decision:
    return Decision(action=Action.stop, reason=reason, result=result)
