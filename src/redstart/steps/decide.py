"""Retry, accept or stop. Holds the limits; the reason it gives is what the user reads."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.course import Pattern, Strategy, Turn
from redstart.core.finding import TRIPWIRE, Findings
from redstart.core.learning import Plan
from redstart.core.noun import clip, many
from redstart.core.report import Judged, Mutants, Reproduced, ReproductionProblem
from redstart.core.run import Action, Decision, Ended, Mode, Result, RunState, Step
from redstart.core.shell import Environment, Execution
from redstart.core.tasks import AuditTask, ImproveTask
from redstart.ports.bundle import Ports
from redstart.ports.store.port import Reply
from redstart.toolkit.errands.caps import spent
from redstart.toolkit.errands.cycles import next_cycle
from redstart.toolkit.errands.subtasks import next_subtasks
from redstart.toolkit.honesty.metric import weigh
from redstart.toolkit.honesty.shortfall import failing_before, failing_tests, green_in_words, unproven_in_words
from redstart.toolkit.installs.planned import with_planned_packages
from redstart.toolkit.languages.registry import is_code
from redstart.toolkit.learning.breaker import Broken, broken
from redstart.toolkit.learning.stuck import is_open, repeated, trend, turn

GIVE_UP_AFTER = 2
"""How often the same patch may come again."""

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
"""Where an attempt has to begin for its strategy to take effect; others begin where they would without it."""


async def decide(run: RunState, ports: Ports) -> Decision:
    if run.spec.mode is Mode.audit:
        return _reported(run)
    if run.last is Step.plan and run.now.plan is not None and run.now.plan.asks:
        return Decision(action=Action.ask, reason=run.now.plan.asks, result=Result.needs_human, next=Step.plan)
    if _has_errands(run):
        return await _errands(run, ports)
    if run.now.decide is not None:
        reply = await ports.person.answer()
        if reply is None:
            return run.now.decide
        return answered(run, run.now.decide, reply).model_copy(update={"answered": True})
    if run.now.check is not None and run.now.check.asks:
        return _ask_packages(run.now.check)
    found = run.now.reproduce
    if found is not None and found.trouble and not _may_ask_again(run, found):
        return _trouble(run, found)
    if run.now.test is not None and run.now.test.verdict.honest_green:
        return await _green(run, ports, run.now.test)
    if run.now.test is not None and run.now.test.verdict.asks and run.spec.mode is not Mode.improve:
        return _ask(run)
    if found is None and run.spec.mode is Mode.improve:
        return _end(Result.capped, cap) if (cap := _cap(run)) else _end(Result.unsolved, _no_aim(run))
    return _stop(run) or _turned(run, _retry(run))


async def _green(run: RunState, ports: Ports, judged: Judged) -> Decision:
    """Green counts, unless what the user measures got worse by it."""
    fixed = judged.verdict.fixed.count
    said = green_in_words(fixed)
    metric = run.spec.task.metric if isinstance(run.spec.task, ImproveTask) else None
    made = run.now.made
    if language := run.foreign_language:
        return Decision(action=Action.accept, reason=unproven_in_words(language), result=Result.unproven)
    if judged.mutants is not None:
        passed = judged.report.counts.passed
        return _noticing(run, judged.mutants, f"{many(passed, 'test')} {'passes' if passed == 1 else 'pass'}")
    if metric is None or made is None:
        return _accept(Result.verified, said)
    environment = Environment.model_validate_json(ports.blobs.get(run.suited.suite.environment))
    asked = Execution(
        argv=metric.command,
        snapshot=made,
        environment=environment,
        limits=run.spec.sandbox,
        cwd=run.spec.suite.folder,
    )
    weighed = await weigh(ports.sandbox, metric, asked, run.spec.base, made)
    if weighed.holds:
        return _accept(Result.verified, f"{said}; {weighed.words}")
    return _end(Result.unsolved if weighed.is_measured else Result.environment, clip(weighed.words, 400))


def _no_aim(run: RunState) -> str:
    """Why a cycle ends before anything is tried."""
    fault = run.now.plan.fault if run.now.plan else ""
    return f"the model named no usable improvement: {fault}" if fault else "the model named no improvement"


def _noticing(run: RunState, found: Mutants, said: str) -> Decision:
    """A new program: tests that would not notice a broken one are written anew, unless they are the user's."""
    noticed = f"{found.killed} of {found.sampled} small changes to the program"
    if not found.too_many_survive or not run.spec.task.writes_first_tests:
        return _accept(Result.verified, f"{said}; they notice {noticed}")
    weak = f"the tests notice only {noticed}"
    ended = _stop(run)
    if ended is None:
        return _again(Step.reproduce, f"{weak}; asking for better tests")
    is_capped = ended.result is Result.capped
    return _end(Result.capped, f"{ended.reason}; {weak}") if is_capped else _end(Result.unsolved, weak)


def _reported(run: RunState) -> Decision:
    """An audit ends with what it found: only what is new and reaches the risk that the user named counts against it."""
    audited = run.now.audit or Findings()
    count = many(audited.count, "finding") if audited.count else "no findings"
    warning = f"; {audited.review.warning}" if audited.review and audited.review.warning else ""
    if not audited.failing:
        return _accept(Result.reported, count + warning)
    scan = run.spec.task_of(AuditTask).scan
    risk = scan.fail_on if scan else None
    return _end(Result.found, f"{count}, {audited.failing} new with risk {risk or 'low'} or above{warning}")


def _has_errands(run: RunState) -> bool:
    """Whether its work is done by runs of their own: cycles of improvement, or a plan's subtasks until all are done."""
    if run.spec.errand:
        return False
    return run.spec.mode is Mode.improve or _has_begun_some(run) or (run.splits and run.last is Step.plan)


def _has_begun_some(run: RunState) -> bool:
    """Whether what it decided last was to wait for errands."""
    return run.now.decide is not None and run.now.decide.action is Action.spawn


async def _errands(run: RunState, ports: Ports) -> Decision:
    ended = await ports.errands.ended() if _has_begun_some(run) else ()
    if run.spec.mode is Mode.create:
        parts = next_subtasks(with_planned_packages(run, ports), run.now.plan or Plan(), ended, ports.trees.merge)
        return _with_packages(parts, ended)
    so_far = run.model_copy(update={"spend": run.spend.plus(spent(ended))})
    files = ports.trees.files(run.draft or run.spec.base)
    empty = bool(run.spec.goal) and not any(map(is_code, files))
    return _with_packages(next_cycle(run, ended, _cap(so_far), empty=empty), ended)


def _with_packages(decision: Decision, ended: Sequence[Ended]) -> Decision:
    """What errands installed for what they made is there for the next ones, and what was allowed to one to all."""
    approved = tuple(dict.fromkeys(name for one in ended for name in one.approved))
    made = [one.installed for one in ended if one.made is not None and one.installed is not None]
    return decision.model_copy(update={"approved": approved, "installed": made[-1] if made else None})


def _ask(run: RunState) -> Decision:
    """A test can be wrong, but only a person may say so."""
    proposed = run.now.apply.proposes if run.now.apply else ()
    doubts = run.now.test.verdict.tampered[len(proposed) :] if run.now.test else ()
    question = f"the patch needs your approval: {'; '.join(doubts)}"
    if proposed:
        why = run.now.patch.test_change if run.now.patch else ""
        question = f"the patch changes {', '.join(proposed)}. The model's reason: {why}"
    question = clip(question, 400)
    return Decision(action=Action.ask, reason=question, result=Result.needs_human, next=Step.patch)


def _ask_packages(found: Findings) -> Decision:
    return Decision(action=Action.ask, reason=found.asks, result=Result.needs_human, next=Step.check)


def answered(run: RunState, asked: Decision, reply: Reply) -> Decision:
    """What a person's answer leads to.

    A patch that they accept is verified only if its tests are green: nobody's word makes a red test so. One that they
    reject is tried otherwise, while the limits leave an attempt; `asked.next` says where that begins.
    """
    if asked.next is Step.check and run.now.check is not None:
        return _about_packages(run, asked.next, run.now.check.packages, reply)
    if asked.next is Step.plan and run.now.plan is not None:
        return _about_packages(run, asked.next, run.now.plan.to_approve, reply)
    if not reply.accepts:
        return _rejected(run, asked.next or Step.patch, f"you rejected the patch: {reply.text}")
    if not _green_by_its_tests(run.now.test):
        return _end(Result.unsolved, "you accepted the patch, but its tests fail")
    return _accept(Result.verified, clip(f"you accepted the patch: {asked.reason}", 400))


def _about_packages(run: RunState, asked_by: Step, packages: tuple[str, ...], reply: Reply) -> Decision:
    """Install what a person approved; else ask for another plan, or for another patch."""
    names = ", ".join(name.partition(":")[2] for name in packages)
    if reply.accepts:
        return _again(asked_by, f"you approved {names}").model_copy(update={"approved": packages})
    back = Step.plan if asked_by is Step.plan else Step.patch
    return _rejected(run, back, f"you rejected these packages: {names}. {reply.text}")


def _rejected(run: RunState, back: Step, said: str) -> Decision:
    said = clip(said.strip().removesuffix(":"), 400)
    ended = _stop(run)
    if ended is not None and ended.result is Result.unsolved:
        return _end(Result.unsolved, f"{said}; no attempts are left")
    return ended or _again(back, said)


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
    problems = (ReproductionProblem.no_tests, ReproductionProblem.already_green)
    return run.spec.task.writes_first_tests and found.trouble in problems


def _trouble(run: RunState, found: Reproduced) -> Decision:
    if run.spec.lacks_test and (cap := _cap(run)):
        return _end(Result.capped, cap)
    if found.trouble is ReproductionProblem.already_green:
        return _accept(Result.already_green, found.remedy or "all tests pass already: there is nothing to fix")
    if found.trouble in (ReproductionProblem.flaky, ReproductionProblem.no_usable_test):
        return _end(Result.unsolved, found.remedy)
    if found.trouble is ReproductionProblem.no_tests:
        return _end(Result.no_tests, found.remedy or "no failing test was found")
    return _end(Result.environment, found.remedy or "the tests cannot be run")


def _stop(run: RunState) -> Decision | None:
    if cap := _cap(run):
        return _end(Result.capped, cap)
    again = repeated(run)
    if again >= GIVE_UP_AFTER:
        return _end(Result.stuck, f"the model proposed the same patch {again + 1} times")
    if run.tries < run.spec.limits.attempts:
        held = broken(run)
        return _end(Result.stuck, held.words) if held and held.ends and not _has_another(run, held) else None
    applied = run.now.apply
    if applied is not None and applied.refused:
        named = "; ".join(f"{reject.path}: {reject.reason}" for reject in applied.rejects[:3])
        return _end(Result.refused, f"the last patch was refused: {named}")
    if refuted := _refuted(run):
        return _end(Result.refused, refuted[0])
    cheats = [one for one in run.now.check.first if one.tool == TRIPWIRE] if run.now.check else []
    if cheats:
        return _end(Result.refused, f"the last patch was refused: {cheats[0].path}: {cheats[0].message}")
    return _end(Result.unsolved, _unsolved(run))


def _refuted(run: RunState) -> tuple[str, ...]:
    """What shows that the targets of the attempt no longer test the code."""
    return run.now.test.verdict.refuted if run.now.test else ()


def _unsolved(run: RunState) -> str:
    """What is left undone when the attempts are used up."""
    attempts = many(run.tries, "attempt")
    found = run.now.reproduce
    if found is not None and _may_ask_again(run, found) and not any(one.red is not None for one in run.history):
        plan = "no usable plan and " if run.now.plan is not None and run.now.plan.fault else ""
        return f"the model wrote {plan}no usable tests in {attempts}"
    return f"{failing_tests(run)} after {attempts}"


def _cap(run: RunState) -> str:
    limits, spend = run.spec.limits, run.spend
    asking = (run.now.patch, run.now.reproduce, run.now.plan)
    if limits.minutes is not None and spend.seconds >= limits.minutes * 60:
        return f"the time limit of {limits.minutes:g} minutes is reached"
    if any(artifact.over_budget for artifact in asking if artifact is not None):
        return "the next model call could exceed the money, token or time limit"
    if limits.usd is not None and spend.usd >= limits.usd:
        return f"the money limit of ${limits.usd:g} is reached"
    if limits.tokens is not None and spend.tokens >= limits.tokens:
        return f"the limit of {limits.tokens:,} tokens is reached"
    return ""


def _retry(run: RunState) -> Decision:
    now = run.now
    if now.reproduce is not None and now.reproduce.trouble:
        return _again(Step.reproduce, f"the tests are not usable: {now.reproduce.remedy or now.reproduce.trouble}")
    if now.test is not None and now.test.probe:
        return _again(Step.patch, "the snippet that the model asked for was run")
    if now.patch is not None and now.patch.fault:
        return _again(Step.patch, now.patch.fault)
    if now.apply is not None and not now.apply.ok:
        return _again(Step.patch, "the patch was refused" if now.apply.refused else "the edits did not apply")
    if now.check is not None and (now.check.count or now.check.fault):
        return _again(Step.patch, now.check.fault or "the patch adds new findings")
    if refuted := _refuted(run):
        return _again(Step.patch, f"the patch was refused: {refuted[0]}")
    if now.test is not None and now.test.verdict.asks:
        return _again(Step.patch, "the patch changes what only a person may approve")
    return _again(Step.retrieve, f"{failing_tests(run)}{failing_before(run)}")


def _has_another(run: RunState, held: Broken) -> bool:
    """Whether only a model has come to its end, and there is a stronger one."""
    return bool(held.model) and is_open(run, Strategy.stronger)


def _turned(run: RunState, plain: Decision) -> Decision:
    """A retry that does something else where the run goes in circles; and what the user is to know of its course."""
    held = broken(run)
    turned = turn(run)
    if held is not None and held.ends:
        turned = Turn(pattern=Pattern.exhausted, strategy=Strategy.stronger, attempts=(run.now.number,))
    warning = held.words if held and not held.ends else ""
    known = plain.model_copy(update={"trend": trend(run), "warning": warning})
    if turned is None or plain.next is Step.reproduce:
        return known
    why = held.words if held and held.ends else _why(run, turned)
    otherwise = {
        "turn": turned,
        "next": _BEGINS.get(turned.strategy, plain.next),
        "reason": f"{why}: {_OTHERWISE[turned.strategy]}",
    }
    return known.model_copy(update=otherwise)


def _why(run: RunState, turned: Turn) -> str:
    """What the attempts show, in the user's words."""
    last = turned.attempts[-1:] or (run.now.number,)
    several = f"attempts {', '.join(map(str, turned.attempts[:-1]))} and {last[0]}"
    first = run.now.test.report.cases[0].id if run.now.test and run.now.test.report.cases else "the same test"
    if turned.pattern is Pattern.revisited and not repeated(run):
        return f"other edits made the same code as attempt {turned.attempts[0]}"
    return {
        Pattern.unfit: f"{several} gave no usable edit",
        Pattern.revisited: "the model proposed the same patch again",
        Pattern.oscillation: f"{several} alternated between two failures",
        Pattern.regress: "more tests fail than before",
        Pattern.same_signature: f"{several} ended in the same failure",
        Pattern.same_test: f"{several} left {clip(first, 120)} failing, each in another way",
        Pattern.no_progress: f"{several} did not reduce the number of failing tests",
        Pattern.exhausted: "",
    }[turned.pattern]


def _again(step: Step, reason: str) -> Decision:
    return Decision(action=Action.retry, reason=reason, next=step)


def _accept(result: Result, reason: str) -> Decision:
    return Decision(action=Action.accept, reason=reason, result=result)


def _end(result: Result, reason: str) -> Decision:
    return Decision(action=Action.stop, reason=reason, result=result)
