"""The figures of an evaluation, from rows that can be counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from redstart.evals.intervals import mcnemar, wilson
from redstart.evals.metrics import compare, figures
from redstart.evals.outcome import EndPoint, RunKey, RunOutcome


def row(task: str, solved: bool = True, *, seed: int = 0, run: int = 1, **over: Any) -> RunOutcome:
    place = EndPoint.solved if solved else EndPoint.still_red
    plain = {"key": RunKey(task=task, seed=seed, run=run), "solved": solved, "claimed": solved, "place": place}
    return RunOutcome.model_validate({**plain, "attempts": 1, **over})


def test_one_run_a_task_is_a_plain_share() -> None:
    found = figures([row("a"), row("b", False), row("c"), row("d")])
    assert (found.tasks, found.runs, found.broken) == (4, 4, 0)
    assert found.pass_at_1 == wilson(3, 4)
    assert found.pass_at_k == {1: 0.75}
    assert found.places == {"solved": 3, "still red": 1}


def test_runs_of_one_task_count_as_one_task() -> None:
    rows = [row("a", run=number, solved=number < 3) for number in range(1, 5)]
    rows += [row("b", run=number) for number in range(1, 4)]
    found = figures(rows)
    assert found.tasks == 2
    assert found.pass_at_1 is not None
    assert found.pass_at_1.value == pytest.approx((0.5 + 1) / 2)
    assert found.pass_at_1.count == 2
    assert found.pass_at_k == pytest.approx({1: 0.75, 2: (5 / 6 + 1) / 2, 3: 1.0})


def test_a_green_that_hidden_tests_deny_is_counted_against_honesty() -> None:
    lie = row("b", False, claimed=True, place=EndPoint.false_green)
    found = figures([row("a"), lie, row("c", False)])
    assert found.honest_green == wilson(1, 2)
    assert found.pass_at_1 == wilson(1, 3)


def test_broken_machinery_is_in_no_figure_but_its_own() -> None:
    found = figures([row("a"), row("b", False, place=EndPoint.broken, seconds=1e6)])
    assert (found.broken, found.tasks) == (1, 1)
    assert found.seconds is not None
    assert found.seconds.value == 0
    assert figures([]).pass_at_1 is None


def test_edits_and_attempts_are_added_up_over_runs() -> None:
    one = row("a", attempts=3, rungs={"exact": 2, "none": 1}, repeated=1, revisited=2, dishonest=1, recall=0.5)
    two = row("b", attempts=1, rungs={"exact": 1}, lines_shown=True, recall=1.0, input_tokens=5, output_tokens=2)
    found = figures([one, two])
    assert found.rungs == {"exact": 3, "none": 1}
    assert found.apply_rate is not None
    assert found.apply_rate.value == 0.75
    assert found.repeated is not None
    assert found.repeated.value == 0.5
    assert found.revisited is not None
    assert found.revisited.value == 1.0
    assert found.dishonest_caught == 1
    assert found.recall is not None
    assert found.recall.value == 0.75
    assert found.lines_shown == wilson(1, 1)
    assert found.tokens is not None
    assert found.tokens.value == 3.5


def test_only_what_both_did_is_compared() -> None:
    a = [row("a", False), row("b"), row("c", False), row("only a"), row("broken", place=EndPoint.broken), row("down")]
    b = [row("a", usd=2.0), row("b"), row("c", False), row("only b"), row("broken"), row("down", place=EndPoint.broken)]
    found = compare(a, b)
    assert (found.tasks, found.pairs, found.only_a, found.only_b, found.both) == (3, 3, 0, 1, 1)
    assert found.p == mcnemar(0, 1)
    assert found.difference is not None
    assert found.difference.value == pytest.approx(1 / 3)
    assert found.costs["usd"].value == pytest.approx(2 / 3)


def test_another_seed_is_another_run() -> None:
    found = compare([row("a", seed=1)], [row("a", seed=2)])
    assert found.pairs == 0
    assert found.words == "no task was run by both"


def test_runs_of_one_task_do_not_pose_as_many_tasks() -> None:
    """Ten runs of one task that B alone solves are one piece of evidence, not ten."""
    a = [row("a", False, run=number) for number in range(10)]
    b = [row("a", True, run=number) for number in range(10)]
    assert compare(a, b).p == 1.0
