from __future__ import annotations

from redstart.core.change import EditKind, FitCounts
from redstart.toolkit.patching.reading.formats import LONGEST_WHOLE, MIN_EDITS, choose_form


def test_blocks_are_requested_until_enough_is_measured():
    assert choose_form({}) is EditKind.block
    assert choose_form({EditKind.block: FitCounts(0, MIN_EDITS - 1)}) is EditKind.block
    assert choose_form({EditKind.diff: FitCounts(MIN_EDITS - 1, MIN_EDITS - 1)}) is EditKind.block


def test_form_with_the_best_measured_rate_is_requested():
    counts = {EditKind.block: FitCounts(30, 50), EditKind.diff: FitCounts(48, 50), EditKind.envelope: FitCounts(40, 50)}
    assert choose_form(counts) is EditKind.diff
    assert choose_form({EditKind.block: FitCounts(50, 50), EditKind.diff: FitCounts(48, 50)}) is EditKind.block


def test_another_form_is_tried_when_the_usual_form_is_poor():
    poor = {EditKind.block: FitCounts(2, 30)}
    assert choose_form(poor) is EditKind.whole
    assert choose_form(poor, longest=LONGEST_WHOLE + 1) is EditKind.envelope
