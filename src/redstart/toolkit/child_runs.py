"""Child runs for the subtasks of a plan and the cycles of an improvement: their limits and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.frozen import clip, format_count
from redstart.core.learning import Plan
from redstart.core.run import (
    Action,
    ChildProgress,
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
from redstart.core.tasks import ImproveTask


def sum_spend(results: Iterable[ChildResult]) -> Spend:
    """Add up what these child runs spent."""
    total = Spend()
    for item in results:
        total = total.add(item.spend)
    return total


def divide_limits(limits: Limits, spend: Spend, shares: int = 1) -> Limits:
    """Divide what is left of the limits among `shares` child runs that run at the same time."""
    return limits.model_copy(
        update={
            "minutes": None if limits.minutes is None else max(limits.minutes - spend.seconds / 60, 0.0),
            "usd": None if limits.usd is None else max(limits.usd - spend.usd, 0.0) / shares,
            "tokens": None if limits.tokens is None else max(limits.tokens - spend.tokens, 0) // shares,
        }
    )


ENDING = 500
MAX_SHOWN_CYCLES = 8
"""How many earlier cycles the next cycle sees."""
LINE = 240
HOPELESS = (Result.capped, Result.environment, Result.unproven, Result.partial)


def plan_next_cycle(run: RunState, results: Sequence[ChildResult], cap: str, *, empty: bool) -> Decision:
    """Decide what follows the child runs that ended: the next cycle, or the end of the run.

    `reached_limit` names the limit that is used up. `is_empty` means that there is no program yet, so the first cycle
    creates it. A cycle that reached a limit, or that could not run the program, is the last one: the next cycle would
    end the same way.
    """
    work, last_good = _count_cycles(run.work, results)
    total_spend = sum_spend(results)
    blocking = next((item for item in results if item.result in HOPELESS), None)
    max_cycles = run.spec.get_task(ImproveTask).cycles
    if cap or blocking or (max_cycles and work.begun >= max_cycles):
        ending = _end(work, cap or (blocking.reason if blocking else ""), blocking.result if blocking else None)
        return ending.model_copy(update={"kept": last_good, "spent": total_spend})
    child_task = ChildTask(
        number=work.begun + 1,
        mode=Mode.create if empty and last_good is None else Mode.improve,
        base=last_good or run.draft or run.spec.base,
        limits=divide_limits(run.spec.limits, run.spend.add(total_spend)),
    )
    progress = work.model_copy(update={"begun": child_task.number})
    summary = work.last[-1] if work.last else "first cycle"
    return Decision(
        action=Action.spawn,
        reason=f"starting cycle {child_task.number} ({summary})",
        errands=(child_task,),
        work=progress,
        kept=last_good,
        spent=total_spend,
    )


def _count_cycles(work: ChildProgress, results: Sequence[ChildResult]) -> tuple[ChildProgress, Snapshot | None]:
    """Count these cycles. Return the progress and the last good version that they made, if any."""
    last_good = None
    for item in results:
        is_kept = item.result is Result.verified and item.made is not None
        last_good = item.made if is_kept else last_good
        work = ChildProgress(
            begun=work.begun,
            kept=work.kept + is_kept,
            dropped=work.dropped + (not is_kept),
            in_a_row=0 if is_kept else work.in_a_row + 1,
            last=(*work.last, _format_cycle(item, is_kept=is_kept))[-MAX_SHOWN_CYCLES:],
        )
    return work, last_good


def _format_cycle(result: ChildResult, *, is_kept: bool) -> str:
    outcome = "kept" if is_kept else f"dropped ({result.reason or 'nothing was made'})"
    return clip(f"cycle {result.number}, {outcome}: {result.about or 'no plan'}", LINE)


def _end(work: ChildProgress, reason: str, result: Result | None) -> Decision:
    summary = f"kept {format_count(work.kept, 'improvement')} of {format_count(work.begun, 'cycle')}"
    summary = clip(summary + (f"; {reason}" if reason else ""), ENDING)
    if work.kept:
        return Decision(action=Action.accept, reason=summary, result=Result.verified, work=work)
    ends = result or (Result.capped if reason else Result.unsolved)
    return Decision(action=Action.stop, reason=summary, result=ends, work=work)


AT_ONCE = 4
FORGIVEN = 1
"""How many child runs of a run may fail. A failed part starts again on top of what the others made."""
LINES = 8
Merge = Callable[[Snapshot, Snapshot, Snapshot], Snapshot | tuple[str, ...]]
"""`Trees.merge`."""


class _Put(NamedTuple):
    """The tree after some child runs, and the subtasks that it contains."""

    tree: Snapshot
    merged_subtasks: tuple[int, ...]
    at_odds: tuple[int, ...] = ()
    """Subtasks that conflict with another one. They are done again on top of it."""
    lines: tuple[str, ...] = ()


def plan_next_subtasks(run: RunState, plan: Plan, results: Sequence[ChildResult], merge: Merge) -> Decision:
    """Decide what follows the child runs that ended: the next ones, the tests of all parts, or the end of the run.

    The run ends if too many child runs failed, or if one reached a limit: too little is left for another try.
    """
    tasks = run.now.decide.errands if run.now.decide else ()
    places = {task.number: task.place for task in tasks}
    failed = [item for item in results if item.made is None]
    combined = _put_together(run, results, places, merge)
    dropped = run.work.dropped + len(failed)
    has_failed = dropped > FORGIVEN or any(item.result is Result.capped for item in failed)
    decision = (
        _stop_after_failures(plan, places, failed)
        if failed and has_failed
        else _continue_program(run, plan, combined, sum_spend(results))
    )
    work = run.work.model_copy(
        update={
            "begun": run.work.begun + len(decision.errands),
            "kept": len(combined.merged_subtasks),
            "dropped": dropped,
            "merged": combined.merged_subtasks,
            "last": (*run.work.last, *combined.lines)[-LINES:],
        }
    )
    combined_tree = combined.tree if combined.merged_subtasks else None
    return decision.model_copy(update={"work": work, "kept": combined_tree, "spent": sum_spend(results)})


def _stop_after_failures(plan: Plan, places: dict[int, int], failed: Sequence[ChildResult]) -> Decision:
    worst = next((item for item in failed if item.result is Result.capped), failed[-1])
    reason = f"{_get_title(plan, places[worst.number])}: {worst.reason}"
    ends = worst.result if worst.result in (Result.capped, Result.stuck, Result.refused) else Result.unsolved
    return Decision(action=Action.stop, reason=clip(reason, 400), result=ends)


def _continue_program(run: RunState, plan: Plan, combined: _Put, total_spend: Spend) -> Decision:
    remaining = [place for place in range(1, len(plan.subtasks) + 1) if place not in combined.merged_subtasks]
    if not remaining:
        return Decision(action=Action.retry, reason="all parts are done; testing them together", next=Step.reproduce)
    # Parts that wait for each other in a cycle have to start somewhere.
    ready = [
        place for place in remaining if set(plan.subtasks[place - 1].needs) <= set(combined.merged_subtasks)
    ] or remaining[:1]
    # A part that conflicted with another runs alone, so it cannot conflict again.
    wave = combined.at_odds[:1] or tuple(ready[:AT_ONCE])
    limits = divide_limits(run.spec.limits, run.spend.add(total_spend), len(wave))
    child_tasks = tuple(
        ChildTask(
            number=run.work.begun + number,
            mode=Mode.create,
            title=_get_title(plan, place),
            criteria=plan.subtasks[place - 1].criteria,
            place=place,
            base=combined.tree,
            limits=limits,
        )
        for number, place in enumerate(wave, 1)
    )
    names = "; ".join(task.title for task in child_tasks)
    reason = f"starting {format_count(len(child_tasks), 'part')}: {names}"
    return Decision(action=Action.spawn, reason=clip(reason, 300), errands=child_tasks)


def _get_title(plan: Plan, place: int) -> str:
    return clip(plan.subtasks[place - 1].title, 200)


def _put_together(run: RunState, results: Sequence[ChildResult], places: dict[int, int], merge: Merge) -> _Put:
    base = run.draft or run.spec.base
    combined = _Put(base, run.work.merged)
    for item in results:
        place = places[item.number]
        if item.made is None:
            combined = combined._replace(
                lines=(*combined.lines, _format_part(item, f"failed ({item.reason or 'nothing was made'})"))
            )
            continue
        merged = merge(base, combined.tree, item.made)
        if isinstance(merged, Snapshot):
            combined = combined._replace(
                tree=merged,
                merged_subtasks=(*combined.merged_subtasks, place),
                lines=(*combined.lines, _format_part(item, "done")),
            )
        else:
            line = _format_part(item, f"done again (conflicts with another part in {', '.join(merged[:3])})")
            combined = combined._replace(at_odds=(*combined.at_odds, place), lines=(*combined.lines, line))
    return combined


def _format_part(result: ChildResult, outcome: str) -> str:
    return clip(f"part {result.number}, {outcome}: {result.about}", LINE)
