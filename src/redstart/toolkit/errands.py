"""Child runs for the subtasks of a plan and the cycles of an improvement: their limits and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.learning import Plan
from redstart.core.noun import clip, many
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


def spent(ended: Iterable[ChildResult]) -> Spend:
    """Add up what these child runs spent."""
    total = Spend()
    for item in ended:
        total = total.plus(item.spend)
    return total


def rest(limits: Limits, spend: Spend, shares: int = 1) -> Limits:
    """Divide what is left of the limits among `shares` child runs that run at the same time."""
    return limits.model_copy(
        update={
            "minutes": None if limits.minutes is None else max(limits.minutes - spend.seconds / 60, 0.0),
            "usd": None if limits.usd is None else max(limits.usd - spend.usd, 0.0) / shares,
            "tokens": None if limits.tokens is None else max(limits.tokens - spend.tokens, 0) // shares,
        }
    )


ENDING = 500
TOLD = 8
"""How many earlier cycles the next cycle sees."""
LINE = 240
HOPELESS = (Result.capped, Result.environment, Result.unproven)


def next_cycle(run: RunState, ended: Sequence[ChildResult], cap: str, *, empty: bool) -> Decision:
    """Decide what follows the child runs that ended: the next cycle, or the end of the run.

    `reached_limit` names the limit that is used up. `is_empty` means that there is no program yet, so the first cycle
    creates it. A cycle that reached a limit, or that could not run the program, is the last one: the next cycle would
    end the same way.
    """
    work, kept = _counted(run.work, ended)
    paid = spent(ended)
    last = next((item for item in ended if item.result in HOPELESS), None)
    most = run.spec.task_of(ImproveTask).cycles
    if cap or last or (most and work.begun >= most):
        ending = _end(work, cap or (last.reason if last else ""), last.result if last else None)
        return ending.model_copy(update={"kept": kept, "spent": paid})
    errand = ChildTask(
        number=work.begun + 1,
        mode=Mode.create if empty and kept is None else Mode.improve,
        base=kept or run.draft or run.spec.base,
        limits=rest(run.spec.limits, run.spend.plus(paid)),
    )
    begun = work.model_copy(update={"begun": errand.number})
    said = work.last[-1] if work.last else "first cycle"
    return Decision(
        action=Action.spawn,
        reason=f"starting cycle {errand.number} ({said})",
        errands=(errand,),
        work=begun,
        kept=kept,
        spent=paid,
    )


def _counted(work: ChildProgress, ended: Sequence[ChildResult]) -> tuple[ChildProgress, Snapshot | None]:
    """Count these cycles. Return the progress and the last good version that they made, if any."""
    good = None
    for item in ended:
        is_kept = item.result is Result.verified and item.made is not None
        good = item.made if is_kept else good
        work = ChildProgress(
            begun=work.begun,
            kept=work.kept + is_kept,
            dropped=work.dropped + (not is_kept),
            in_a_row=0 if is_kept else work.in_a_row + 1,
            last=(*work.last, _cycle_line(item, is_kept=is_kept))[-TOLD:],
        )
    return work, good


def _cycle_line(one: ChildResult, *, is_kept: bool) -> str:
    came_to = "kept" if is_kept else f"dropped ({one.reason or 'nothing was made'})"
    return clip(f"cycle {one.number}, {came_to}: {one.about or 'no plan'}", LINE)


def _end(work: ChildProgress, why: str, result: Result | None) -> Decision:
    said = f"kept {many(work.kept, 'improvement')} of {many(work.begun, 'cycle')}"
    said = clip(said + (f"; {why}" if why else ""), ENDING)
    if work.kept:
        return Decision(action=Action.accept, reason=said, result=Result.verified, work=work)
    ends = result or (Result.capped if why else Result.unsolved)
    return Decision(action=Action.stop, reason=said, result=ends, work=work)


AT_ONCE = 4
FORGIVEN = 1
"""How many child runs of a run may fail. A failed part starts again on top of what the others made."""
LINES = 8
Merge = Callable[[Snapshot, Snapshot, Snapshot], Snapshot | tuple[str, ...]]
"""`Trees.merge`."""


class _Put(NamedTuple):
    """The tree after some child runs, and the subtasks that it contains."""

    tree: Snapshot
    merged: tuple[int, ...]
    at_odds: tuple[int, ...] = ()
    """Subtasks that conflict with another one. They are done again on top of it."""
    lines: tuple[str, ...] = ()


def next_subtasks(run: RunState, plan: Plan, ended: Sequence[ChildResult], merge: Merge) -> Decision:
    """Decide what follows the child runs that ended: the next ones, the tests of all parts, or the end of the run.

    The run ends if too many child runs failed, or if one reached a limit: too little is left for another try.
    """
    asked = run.now.decide.errands if run.now.decide else ()
    places = {errand.number: errand.place for errand in asked}
    failed = [item for item in ended if item.made is None]
    put = _put_together(run, ended, places, merge)
    dropped = run.work.dropped + len(failed)
    over = dropped > FORGIVEN or any(item.result is Result.capped for item in failed)
    decision = _failed(plan, places, failed) if failed and over else _going_on(run, plan, put, spent(ended))
    work = run.work.model_copy(
        update={
            "begun": run.work.begun + len(decision.errands),
            "kept": len(put.merged),
            "dropped": dropped,
            "merged": put.merged,
            "last": (*run.work.last, *put.lines)[-LINES:],
        }
    )
    kept = put.tree if put.merged else None
    return decision.model_copy(update={"work": work, "kept": kept, "spent": spent(ended)})


def _failed(plan: Plan, places: dict[int, int], failed: Sequence[ChildResult]) -> Decision:
    worst = next((item for item in failed if item.result is Result.capped), failed[-1])
    told = f"{_title(plan, places[worst.number])}: {worst.reason}"
    ends = worst.result if worst.result in (Result.capped, Result.stuck, Result.refused) else Result.unsolved
    return Decision(action=Action.stop, reason=clip(told, 400), result=ends)


def _going_on(run: RunState, plan: Plan, put: _Put, paid: Spend) -> Decision:
    left = [place for place in range(1, len(plan.subtasks) + 1) if place not in put.merged]
    if not left:
        return Decision(action=Action.retry, reason="all parts are done; testing them together", next=Step.reproduce)
    # Parts that wait for each other in a cycle have to start somewhere.
    ready = [place for place in left if set(plan.subtasks[place - 1].needs) <= set(put.merged)] or left[:1]
    # A part that conflicted with another runs alone, so it cannot conflict again.
    wave = put.at_odds[:1] or tuple(ready[:AT_ONCE])
    limits = rest(run.spec.limits, run.spend.plus(paid), len(wave))
    errands = tuple(
        ChildTask(
            number=run.work.begun + number,
            mode=Mode.create,
            title=_title(plan, place),
            criteria=plan.subtasks[place - 1].criteria,
            place=place,
            base=put.tree,
            limits=limits,
        )
        for number, place in enumerate(wave, 1)
    )
    names = "; ".join(errand.title for errand in errands)
    started = f"starting {many(len(errands), 'part')}: {names}"
    return Decision(action=Action.spawn, reason=clip(started, 300), errands=errands)


def _title(plan: Plan, place: int) -> str:
    return clip(plan.subtasks[place - 1].title, 200)


def _put_together(run: RunState, ended: Sequence[ChildResult], places: dict[int, int], merge: Merge) -> _Put:
    base = run.draft or run.spec.base
    put = _Put(base, run.work.merged)
    for item in ended:
        place = places[item.number]
        if item.made is None:
            put = put._replace(lines=(*put.lines, _line(item, f"failed ({item.reason or 'nothing was made'})")))
            continue
        merged = merge(base, put.tree, item.made)
        if isinstance(merged, Snapshot):
            put = put._replace(tree=merged, merged=(*put.merged, place), lines=(*put.lines, _line(item, "done")))
        else:
            told = _line(item, f"done again (conflicts with another part in {', '.join(merged[:3])})")
            put = put._replace(at_odds=(*put.at_odds, place), lines=(*put.lines, told))
    return put


def _line(one: ChildResult, came_to: str) -> str:
    return clip(f"part {one.number}, {came_to}: {one.about}", LINE)
