"""Improvement after improvement: each is an errand, and what it made is kept only if it is verified."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Snapshot
from redstart.core.noun import clip, many
from redstart.core.run import Action, Decision, Ended, Errand, Mode, Result, RunState, Work
from redstart.core.tasks import ImproveTask
from redstart.toolkit.errands.caps import rest, spent

ENDING = 500
TOLD = 8
"""How many cycles the next one is told about."""
LINE = 240
HOPELESS = (Result.capped, Result.environment, Result.unproven)


def next_cycle(run: RunState, ended: Sequence[Ended], cap: str, *, empty: bool) -> Decision:
    """What to do after the errands that ended: the next one, or the end of the run.

    `cap` says which limit is used up by now; `empty` that there is no program yet, so that it is made first. A cycle
    that came to such a limit, or that could not run the program at all, is the last: the next would end there too.
    """
    work, kept = _counted(run.work, ended)
    paid = spent(ended)
    last = next((one for one in ended if one.result in HOPELESS), None)
    most = run.spec.task_of(ImproveTask).cycles
    if cap or last or (most and work.begun >= most):
        ending = _end(work, cap or (last.reason if last else ""), last.result if last else None)
        return ending.model_copy(update={"kept": kept, "spent": paid})
    errand = Errand(
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


def _counted(work: Work, ended: Sequence[Ended]) -> tuple[Work, Snapshot | None]:
    """With these cycles counted, and the last good version among what they made."""
    good = None
    for one in ended:
        is_kept = one.result is Result.verified and one.made is not None
        good = one.made if is_kept else good
        work = Work(
            begun=work.begun,
            kept=work.kept + is_kept,
            dropped=work.dropped + (not is_kept),
            in_a_row=0 if is_kept else work.in_a_row + 1,
            last=(*work.last, _line(one, is_kept=is_kept))[-TOLD:],
        )
    return work, good


def _line(one: Ended, *, is_kept: bool) -> str:
    came_to = "kept" if is_kept else f"dropped ({one.reason or 'nothing was made'})"
    return clip(f"cycle {one.number}, {came_to}: {one.about or 'no plan'}", LINE)


def _end(work: Work, why: str, result: Result | None) -> Decision:
    said = f"kept {many(work.kept, 'improvement')} of {many(work.begun, 'cycle')}"
    said = clip(said + (f"; {why}" if why else ""), ENDING)
    if work.kept:
        return Decision(action=Action.accept, reason=said, result=Result.verified, work=work)
    ends = result or (Result.capped if why else Result.unsolved)
    return Decision(action=Action.stop, reason=said, result=ends, work=work)
