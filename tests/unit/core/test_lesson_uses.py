"""What a finished run tells about the lessons that applied to it."""

from __future__ import annotations

import pytest

from redstart.core.lesson import LessonDraw, LessonDraws
from redstart.core.lesson_uses import collect_lesson_outcomes
from redstart.core.run import Result, Status
from redstart.testing.states import make_state

TAUGHT = LessonDraws(coins=(LessonDraw(lesson="a", probability=0.5, shown=True),))


@pytest.mark.parametrize(
    ("result", "greens"), [(Result.verified, [True]), (Result.stuck, [False]), (Result.unproven, [])]
)
def test_result_awaiting_acceptance_records_no_lesson_use(result, greens):
    run = make_state(status=Status.finished, result=result, taught=TAUGHT)
    assert [use.green for use in collect_lesson_outcomes(run).values()] == greens
