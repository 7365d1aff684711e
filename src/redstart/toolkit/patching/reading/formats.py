"""Choose the edit format to request from a model, by how often its edits in each format fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from redstart.core.change import EditKind, FitCounts

MIN_EDITS = 8
"""How many edits in a format are needed before its own rate counts."""
POOR = 0.6
"""Below this rate of the usual format, an untried format is worth a try."""
LONGEST_WHOLE = 400
"""The most lines of a file that may be requested as a whole."""

_EXPECTED = {EditKind.block: 0.85, EditKind.whole: 0.9, EditKind.envelope: 0.75, EditKind.diff: 0.7}
_WEIGHT = 4.0


def choose_form(
    counts: Mapping[EditKind, FitCounts],
    longest: int = 0,
    usual: EditKind = EditKind.block,
    *,
    excluded: Collection[EditKind] = (),
) -> EditKind:
    """Return the format with the best rate among the model's usual one and those tried often enough.

    If that rate is poor, return a format that was not tried often enough. `longest` is the number of lines of the
    longest file in question: a long file is not requested as a whole. With `excluded`, return the likeliest of the
    other formats; if there is none, ignore `excluded`.
    """
    allowed = [kind for kind in EditKind if kind is not EditKind.whole or longest <= LONGEST_WHOLE]
    if others := [kind for kind in allowed if kind not in excluded] if excluded else []:
        return max(others, key=lambda kind: _rate(counts, kind))
    usual = usual if usual in allowed else EditKind.block
    measured = [kind for kind in allowed if kind is usual or counts.get(kind, FitCounts()).tried >= MIN_EDITS]
    best = max(measured, key=lambda kind: (_rate(counts, kind), kind is usual))
    untried = [kind for kind in allowed if kind not in measured]
    if _rate(counts, best) >= POOR or counts.get(usual, FitCounts()).tried < MIN_EDITS or not untried:
        return best
    return max(untried, key=lambda kind: _rate(counts, kind))


def _rate(counts: Mapping[EditKind, FitCounts], kind: EditKind) -> float:
    """Return the measured rate, shrunk towards the usual rate while there are few measurements."""
    fitted, tried = counts.get(kind, FitCounts())
    return (fitted + _WEIGHT * _EXPECTED[kind]) / (tried + _WEIGHT)
