from __future__ import annotations

from redstart.core.change import EditKind, FitCounts
from redstart.toolkit.patching.reading.formats import ENOUGH, LONGEST_WHOLE, best_form


def test_blocks_are_asked_for_until_there_is_enough_to_know():
    assert best_form({}) is EditKind.block
    assert best_form({EditKind.block: FitCounts(0, ENOUGH - 1)}) is EditKind.block
    assert best_form({EditKind.diff: FitCounts(ENOUGH - 1, ENOUGH - 1)}) is EditKind.block


def test_the_form_with_the_best_measured_rate_is_asked_for():
    counts = {EditKind.block: FitCounts(30, 50), EditKind.diff: FitCounts(48, 50), EditKind.envelope: FitCounts(40, 50)}
    assert best_form(counts) is EditKind.diff
    assert best_form({EditKind.block: FitCounts(50, 50), EditKind.diff: FitCounts(48, 50)}) is EditKind.block


def test_where_the_usual_form_is_poor_another_is_tried():
    poor = {EditKind.block: FitCounts(2, 30)}
    assert best_form(poor) is EditKind.whole
    assert best_form(poor, longest=LONGEST_WHOLE + 1) is EditKind.envelope
