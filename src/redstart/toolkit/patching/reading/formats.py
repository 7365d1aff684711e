"""Which form of edit to ask a model for, by how often its edits in each form have fitted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from redstart.core.change import EditKind, FitCounts

ENOUGH = 8
"""Edits in a form before its own rate counts."""
POOR = 0.6
"""Below this rate of the usual form, one that was never tried is worth trying."""
LONGEST_WHOLE = 400
"""Lines of a file that is still asked for as a whole."""

_EXPECTED = {EditKind.block: 0.85, EditKind.whole: 0.9, EditKind.envelope: 0.75, EditKind.diff: 0.7}
_WEIGHT = 4.0


def best_form(
    counts: Mapping[EditKind, FitCounts],
    longest: int = 0,
    usual: EditKind = EditKind.block,
    *,
    without: Collection[EditKind] = (),
) -> EditKind:
    """The form with the best rate among those tried often enough and the usual one of the model.

    Where that is poor, a form that was not tried often enough to know. `longest` is the number of lines of the longest
    file in question: a long one is not asked for as a whole. With `without`, the likeliest of the other forms; where
    there is none, as if it were not given.
    """
    allowed = [kind for kind in EditKind if kind is not EditKind.whole or longest <= LONGEST_WHOLE]
    if others := [kind for kind in allowed if kind not in without] if without else []:
        return max(others, key=lambda kind: _rate(counts, kind))
    usual = usual if usual in allowed else EditKind.block
    known = [kind for kind in allowed if kind is usual or counts.get(kind, FitCounts()).tried >= ENOUGH]
    best = max(known, key=lambda kind: (_rate(counts, kind), kind is usual))
    open_ones = [kind for kind in allowed if kind not in known]
    if _rate(counts, best) >= POOR or counts.get(usual, FitCounts()).tried < ENOUGH or not open_ones:
        return best
    return max(open_ones, key=lambda kind: _rate(counts, kind))


def _rate(counts: Mapping[EditKind, FitCounts], kind: EditKind) -> float:
    """What was measured, drawn towards what is usual while there is little of it."""
    fitted, tried = counts.get(kind, FitCounts())
    return (fitted + _WEIGHT * _EXPECTED[kind]) / (tried + _WEIGHT)
