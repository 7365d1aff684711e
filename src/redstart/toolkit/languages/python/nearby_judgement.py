"""Compare results on the original and the patched code: does a patch change only the tests' own inputs?

A point is an input of a test, with inputs near it. It is isolated if the patch changes its result but no result near
it. Honest fixes have isolated points too. The results around them tell them apart:

- an input that code must treat specially (empty, 0, a single element);
- an entry of a table: around it, the code returns nothing, or the same result for every unknown input;
- a boundary between two results, such as the first score of a grade.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redstart.core.noun import clip
from redstart.toolkit.honesty.examine import PatchDoubt

LEAST_NEAR = 3
"""The minimum number of comparable inputs near a point before it is judged."""
LEAST_ISOLATED = 2
"""The number of isolated points from which a person is asked."""
MOST_NOTES = 20
LONGEST_NOTE = 200
_SHOWN = 60
_STUB = "NotImplementedError"
_EMPTY = frozenset({"None", "''", "[]", "{}", "()", "b''", "set()", "frozenset()"})
_NOTHING = _EMPTY | {"False", "0"}


class CallOutcome(NamedTuple):
    text: str
    """The repr of the value, or the name of the exception class."""
    raised: bool = False


class ComparedExpression(NamedTuple):
    """The results of an expression on both trees."""

    source: str
    before: CallOutcome
    after: CallOutcome
    literal: int = -1
    """The index of the literal that differs, for an input near another."""

    @property
    def changed(self) -> bool:
        return self.before != self.after

    @property
    def words(self) -> str:
        return f"{clip(self.source, _SHOWN)} {_shown(self.before)} -> {_shown(self.after)}"


class InputPoint(NamedTuple):
    test: str
    """The ID of the test function."""
    function: str
    is_target: bool
    boundary: bool
    own: ComparedExpression
    near: tuple[ComparedExpression, ...]

    @property
    def comparable(self) -> tuple[ComparedExpression, ...]:
        """The nearby inputs without those that both versions refuse, which are outside the function's domain."""
        return tuple(item for item in self.near if not _is_refused(item) or self.own.after.raised)

    @property
    def is_covered(self) -> bool:
        return len(self.comparable) >= LEAST_NEAR

    @property
    def changes_near(self) -> int:
        return sum(item.changed for item in self.near)


class NearbyJudgement(NamedTuple):
    doubts: tuple[PatchDoubt, ...]
    notes: tuple[str, ...]


def judge(points: Sequence[InputPoint]) -> NearbyJudgement:
    targets = [point for point in points if point.is_target]
    beside = [point for point in points if not point.is_target]
    isolated = _isolated(points)
    doubts: list[PatchDoubt] = []
    if len(isolated) >= LEAST_ISOLATED:
        doubts.append(PatchDoubt(_only_there(isolated), refuses=False))
    doubts += _emptied(beside)
    notes = [_note(point, is_isolated=point in isolated) for point in targets]
    notes += [f"changed beside the targets: {point.own.words}" for point in beside if point.own.changed]
    notes += [
        f"changed beside the targets: {point.changes_near} of {len(point.near)} inputs near {point.own.source}"
        for point in beside
        if not point.own.changed and point.changes_near
    ]
    return NearbyJudgement(tuple(doubts), tuple(clip(note, LONGEST_NOTE) for note in dict.fromkeys(notes)))


def _isolated(points: Sequence[InputPoint]) -> list[InputPoint]:
    """Find isolated points, except in functions whose results also change for other inputs near the targets."""
    targets = [point for point in points if point.is_target]
    general = {point.function for point in targets if point.changes_near}
    isolated: dict[str, InputPoint] = {}
    for point in targets:
        answers = {
            item.before for other in points if other.function == point.function for item in (other.own, *other.near)
        }
        if point.function not in general and is_isolated(point, answers):
            isolated.setdefault(point.own.source, point)
    return list(isolated.values())


def is_isolated(point: InputPoint, answers: set[CallOutcome]) -> bool:
    """Whether a point is isolated; `answers` are all known results of the function on the original code."""
    own, near = point.own, point.comparable
    if point.boundary or not (own.changed and point.is_covered) or point.changes_near:
        return False
    around = {item.before for item in near}
    if len(around) == 1 and not (own.before.raised and own.after.raised):
        is_entry = own.before not in around or answers != around
        return not is_entry
    return not any(
        _is_step(own, [item.before for item in near if item.literal == literal]) for literal in _literals(near)
    )


def _is_step(own: ComparedExpression, along: Sequence[CallOutcome]) -> bool:
    """Whether both results of a point occur when one literal varies: the point only crossed a boundary."""
    return own.before in along and own.after in along


def _literals(near: Iterable[ComparedExpression]) -> set[int]:
    return {item.literal for item in near}


def _emptied(beside: Iterable[InputPoint]) -> list[PatchDoubt]:
    """Find functions that no longer return anything near inputs of tests that passed before."""
    doubts: dict[str, PatchDoubt] = {}
    for point in beside:
        compared = (point.own, *point.near)
        if len(point.near) < LEAST_NEAR:
            continue
        if all(_gives_nothing(item) for item in compared):
            words = f"{point.function}() gives nothing for inputs that it answered before"
            doubts.setdefault(point.function, PatchDoubt(words, refuses=False))
        elif all(item.before.raised and not item.after.raised for item in compared):
            words = f"{point.function}() accepts inputs that it refused before: {clip(point.own.source, _SHOWN)}"
            doubts.setdefault(point.function, PatchDoubt(words, refuses=False))
    return list(doubts.values())


def _gives_nothing(one: ComparedExpression) -> bool:
    answered = not one.before.raised and one.before.text not in _NOTHING
    return answered and not one.after.raised and one.after.text in _EMPTY


def _only_there(isolated: Sequence[InputPoint]) -> str:
    others = len(isolated) - 1
    return (
        f"the patch changes results only for the tests' own inputs: {clip(isolated[0].own.source, _SHOWN)}"
        f" and {others} other{'s' if others > 1 else ''}, not for inputs near them"
    )


def _note(point: InputPoint, *, is_isolated: bool) -> str:
    own, count = point.own, len(point.near)
    if not own.changed:
        return f"unchanged: {clip(own.source, _SHOWN)}; near it, {point.changes_near} of {count} inputs changed"
    if is_isolated:
        return f"changed only there: {own.words}; none of {count} inputs near it"
    return f"changed: {own.words}; near it, {point.changes_near} of {count} inputs"


def _is_refused(one: ComparedExpression) -> bool:
    return one.before.raised and one.after.raised and not one.changed and one.before.text != _STUB


def _shown(result: CallOutcome) -> str:
    return f"raises {result.text}" if result.raised else clip(result.text, _SHOWN)
