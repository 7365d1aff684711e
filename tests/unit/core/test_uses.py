"""What a finished run tells about the lessons that applied to it."""

from __future__ import annotations

import pytest

from redstart.core.lesson import LessonDraw, LessonDraws
from redstart.core.run import Result, Status
from redstart.core.uses import uses_of
from redstart.testing.states import state

TAUGHT = LessonDraws(coins=(LessonDraw(lesson="a", probability=0.5, shown=True),))


@pytest.mark.parametrize(
    ("result", "greens"), [(Result.verified, [True]), (Result.stuck, [False]), (Result.unproven, [])]
)
def test_a_result_that_a_person_may_still_accept_says_nothing(result, greens):
    run = state(status=Status.finished, result=result, taught=TAUGHT)
    assert [use.green for use in uses_of(run).values()] == greens
