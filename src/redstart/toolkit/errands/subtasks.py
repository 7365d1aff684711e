"""A plan's subtasks as errands: those that need no other at once, and what they made put together by git."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.learning import Plan
from redstart.core.noun import clip, many
from redstart.core.run import Action, Decision, Ended, Errand, Mode, Result, RunState, Spend, Step
from redstart.toolkit.errands.caps import rest, spent

AT_ONCE = 4
FORGIVEN = 1
"""How many errands of a run may fail: such a part is begun anew, on top of what the others made."""
LINE = 240
LINES = 8
Merge = Callable[[Snapshot, Snapshot, Snapshot], Snapshot | tuple[str, ...]]
"""`Trees.merge`."""


class _Put(NamedTuple):
    """What is there after some errands, and which subtasks it holds."""

    tree: Snapshot
    merged: tuple[int, ...]
    at_odds: tuple[int, ...] = ()
    """Subtasks whose work does not go together with another's: they are done again on top of that."""
    lines: tuple[str, ...] = ()


def next_subtasks(run: RunState, plan: Plan, ended: Sequence[Ended], merge: Merge) -> Decision:
    """What to do after the errands that ended: the next ones, the tests of all of it, or the end where too many failed.

    The run ends at once where an errand met a limit: what is left of that would not do for another try.
    """
    asked = run.now.decide.errands if run.now.decide else ()
    places = {errand.number: errand.place for errand in asked}
    failed = [one for one in ended if one.made is None]
    put = _put_together(run, ended, places, merge)
    dropped = run.work.dropped + len(failed)
    over = dropped > FORGIVEN or any(one.result is Result.capped for one in failed)
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


def _failed(plan: Plan, places: dict[int, int], failed: Sequence[Ended]) -> Decision:
    worst = next((one for one in failed if one.result is Result.capped), failed[-1])
    told = f"{_title(plan, places[worst.number])}: {worst.reason}"
    ends = worst.result if worst.result in (Result.capped, Result.stuck, Result.refused) else Result.unsolved
    return Decision(action=Action.stop, reason=clip(told, 400), result=ends)


def _going_on(run: RunState, plan: Plan, put: _Put, paid: Spend) -> Decision:
    left = [place for place in range(1, len(plan.subtasks) + 1) if place not in put.merged]
    if not left:
        return Decision(action=Action.retry, reason="all parts are done; testing them together", next=Step.reproduce)
    # One that waits for itself in a circle has to begin somewhere.
    ready = [place for place in left if set(plan.subtasks[place - 1].needs) <= set(put.merged)] or left[:1]
    # What was at odds with another part goes alone: then it cannot be so again.
    wave = put.at_odds[:1] or tuple(ready[:AT_ONCE])
    limits = rest(run.spec.limits, run.spend.plus(paid), len(wave))
    errands = tuple(
        Errand(
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


def _put_together(run: RunState, ended: Sequence[Ended], places: dict[int, int], merge: Merge) -> _Put:
    base = run.draft or run.spec.base
    put = _Put(base, run.work.merged)
    for one in ended:
        place = places[one.number]
        if one.made is None:
            put = put._replace(lines=(*put.lines, _line(one, f"failed ({one.reason or 'nothing was made'})")))
            continue
        merged = merge(base, put.tree, one.made)
        if isinstance(merged, Snapshot):
            put = put._replace(tree=merged, merged=(*put.merged, place), lines=(*put.lines, _line(one, "done")))
        else:
            told = _line(one, f"done again (conflicts with another part in {', '.join(merged[:3])})")
            put = put._replace(at_odds=(*put.at_odds, place), lines=(*put.lines, told))
    return put


def _line(one: Ended, came_to: str) -> str:
    return clip(f"part {one.number}, {came_to}: {one.about}", LINE)
