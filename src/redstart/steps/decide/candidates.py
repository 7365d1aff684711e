"""Decide on a fix that several child runs try: which begin, whose patch is taken, what a person is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.frozen import clip, format_count
from redstart.core.run import (
    RESULTS_WITH_PATCH,
    Action,
    ChildResult,
    ChildTask,
    Decision,
    Limits,
    Mode,
    Result,
    RunState,
    Spend,
    Step,
)
from redstart.core.tasks import CandidatePlan
from redstart.ports.bundle import Ports
from redstart.steps.decide.child_runs import get_child_results, is_waiting_for_child_runs
from redstart.steps.decide.ending import decide_on_trouble, end, limit_reached
from redstart.steps.decide.patch_comparison import find_difference
from redstart.steps.decide.person import decide_with_person
from redstart.toolkit.child_runs import divide_limits, sum_spend

_LONGEST_REASON = 600
_LONGEST_QUESTION = 900


class _Candidate(NamedTuple):
    """A candidate that ended with a patch."""

    result: ChildResult
    made: Snapshot
    lines: int
    """How many lines its patch adds and removes."""


async def decide_on_candidates(run: RunState, ports: Ports, plan: CandidatePlan) -> Decision:
    if is_waiting_for_child_runs(run):
        results = await get_child_results(run, ports)
        return await _decide_on_results(run, ports, plan, results)
    if run.now.decide is not None:
        return await _decide_after_answer(run, ports, run.now.decide)
    if run.now.reproduce is not None and run.now.reproduce.trouble:
        return decide_on_trouble(run, run.now.reproduce)
    return _start_next(run, plan, ())


async def _decide_on_results(
    run: RunState, ports: Ports, plan: CandidatePlan, results: Sequence[ChildResult]
) -> Decision:
    has_green = any(item.result is Result.verified for item in results)
    if run.work.begun < plan.count and (plan.choose or not has_green):
        updated_run = run.model_copy(update={"spend": run.spend.add(sum_spend(results))})
        if not (limit := limit_reached(updated_run)):
            return _start_next(run, plan, results)
        if not has_green:
            return _with_spend(end(Result.capped, f"{limit}; {_list_reasons(results)}"), results)
    candidates = _list_candidates(run, ports, results)
    if not candidates:
        return _with_spend(_stop_without_patch(results), results)
    greens = [item for item in candidates if item.result.result is Result.verified]
    if not plan.choose or len(greens) < 2:
        return _with_spend(_adopt(run, plan, candidates[0]), results)
    return _with_spend(await _choose(run, ports, plan, greens), results)


def _start_next(run: RunState, plan: CandidatePlan, results: Sequence[ChildResult]) -> Decision:
    """Start the next candidates. What is left of the limits is divided among all that are still to come."""
    begun, fast = run.work.begun, plan.fast
    limits = _share_limits(run.spec.limits, run.spend.add(sum_spend(results)), plan.count - begun)
    last = plan.count
    if fast is not None and not begun:
        last = fast.count
        limits = limits.model_copy(update={"attempts": min(limits.attempts, fast.attempts)})
    earlier = run.now.decide.errands if run.now.decide else ()
    new = tuple(
        ChildTask(number=number, mode=Mode.fix, base=run.spec.base, limits=limits)
        for number in range(begun + 1, last + 1)
    )
    model = "" if fast is None else " with the fast model" if not begun else " with the strong model"
    return Decision(
        action=Action.spawn,
        reason=f"starting {format_count(len(new), 'candidate')}{model}",
        # The earlier ones have ended; they are listed so that their results are read again.
        errands=(*earlier, *new),
        work=run.work.model_copy(update={"begun": last}),
    )


def _share_limits(limits: Limits, spend: Spend, shares: int) -> Limits:
    """Divide what is left of the money, the tokens and the time, so that no sum can exceed a limit of the run."""
    shared = divide_limits(limits, spend, shares)
    return shared.model_copy(update={"minutes": None if shared.minutes is None else shared.minutes / shares})


def _list_candidates(run: RunState, ports: Ports, results: Sequence[ChildResult]) -> list[_Candidate]:
    """List the candidates with a patch, best first: by result, in the order of their start, or the smallest first."""
    candidates = [
        _Candidate(item, item.attempt.made, _count_changed_lines(ports.trees.diff(run.base, item.attempt.made)))
        for item in results
        if item.attempt is not None and item.attempt.made is not None
    ]
    smallest = run.spec.candidates is not None and run.spec.candidates.choose
    return sorted(
        candidates,
        key=lambda item: (
            RESULTS_WITH_PATCH.index(item.result.result or Result.partial),
            item.lines if smallest else 0,
            item.result.number,
        ),
    )


def _count_changed_lines(diff: bytes) -> int:
    lines = diff.splitlines()
    return sum(line[:1] in (b"+", b"-") and line[:4] not in (b"+++ ", b"--- ") for line in lines)


async def _choose(run: RunState, ports: Ports, plan: CandidatePlan, greens: Sequence[_Candidate]) -> Decision:
    """Take the smallest patch, or ask a person if another one behaves differently."""
    best, others = greens[0], [item for item in greens[1:] if item.made.tree != greens[0].made.tree]
    difference = await find_difference(run, ports, [best.made, *(item.made for item in others)]) if others else None
    size = f"the smallest of {len(greens)} patches that pass ({format_count(best.lines, 'changed line')})"
    if difference is None:
        decision = _adopt(run, plan, best)
        return decision.model_copy(update={"reason": clip(f"{decision.reason}; {size}", _LONGEST_REASON)})
    shown = "; ".join(
        f"{outcome} with candidate {item.result.number}"
        for outcome, item in zip(difference.outcomes, [best, *others], strict=True)
    )
    different = tuple(
        item.result.number
        for outcome, item in zip(difference.outcomes[1:], others, strict=True)
        if outcome != difference.outcomes[0]
    )
    question = (
        f"the candidates differ at an input that no test checks: {difference.source} gives {shown}. "
        f"Is candidate {best.result.number} right ({size})?"
    )
    return _propose(run, best.result, question, different)


async def _decide_after_answer(run: RunState, ports: Ports, question: Decision) -> Decision:
    """Decide after a person's answer: about the candidate that was proposed, or about a patch that was taken."""
    if not (question.action is Action.ask and run.work.chosen):
        decision = await decide_with_person(run, ports)
        return (decision or question).model_copy(update={"spent": Spend()})
    reply = await ports.person.answer()
    if reply is None:
        return question.model_copy(update={"spent": Spend()})
    number, others = run.work.chosen, run.work.others
    if reply.accepts:
        reason = f"you accepted candidate {number}: {question.reason}"
        accepted = Decision(action=Action.accept, reason=clip(reason, _LONGEST_REASON), result=Result.verified)
        return accepted.model_copy(update={"answered": True})
    rejection = clip(f"you rejected candidate {number}: {reply.text}".strip().removesuffix(":"), 400)
    if not others:
        return end(Result.unsolved, rejection).model_copy(update={"answered": True})
    results = {item.number: item for item in await ports.child_runs.load_results()}
    reason = f"{rejection}; candidate {others[0]} passes too and behaves differently. Is it right?"
    return _propose(run, results[others[0]], reason, others[1:]).model_copy(update={"answered": True})


def _propose(run: RunState, result: ChildResult, question: str, others: tuple[int, ...]) -> Decision:
    decision = Decision(
        action=Action.ask,
        reason=clip(question, _LONGEST_QUESTION),
        result=Result.needs_human,
        next=Step.patch,
        errands=run.now.decide.errands if run.now.decide else (),
    )
    return _take(run, decision, result, others)


def _adopt(run: RunState, plan: CandidatePlan, candidate: _Candidate) -> Decision:
    """Take the patch and the proof of a candidate as those of the run."""
    result = candidate.result
    reason = f"{result.reason} (candidate {result.number} of {plan.count})"
    decision = Decision(action=Action.accept, reason=clip(reason, _LONGEST_REASON), result=result.result)
    return _take(run, decision, result)


def _take(run: RunState, decision: Decision, result: ChildResult, others: tuple[int, ...] = ()) -> Decision:
    work = run.work.model_copy(update={"kept": 1, "chosen": result.number, "others": others})
    update = {"adopted": result.attempt, "set_aside": result.set_aside, "installed": result.installed, "work": work}
    return decision.model_copy(update=update)


def _stop_without_patch(results: Sequence[ChildResult]) -> Decision:
    """End without a patch. If all candidates ended alike, the run ends like them."""
    outcomes = {item.result for item in results if item.result is not None}
    result = outcomes.pop() if len(outcomes) == 1 else Result.unsolved
    return end(result, f"no candidate passed: {_list_reasons(results)}")


def _list_reasons(results: Sequence[ChildResult]) -> str:
    """Say how each candidate ended; those that ended alike are named together."""
    numbers: dict[str, list[str]] = {}
    for item in results:
        numbers.setdefault(clip(item.reason, 120), []).append(str(item.number))
    parts = (
        f"{'candidates' if len(names) > 1 else 'candidate'} {', '.join(names)}: {reason}"
        for reason, names in numbers.items()
    )
    return clip("; ".join(parts), _LONGEST_REASON)


def _with_spend(decision: Decision, results: Sequence[ChildResult]) -> Decision:
    """Add what all candidates spent: it is counted once, by the decision after the last of them."""
    if decision.action is Action.spawn:
        return decision
    return decision.model_copy(update={"spent": sum_spend(results)})
