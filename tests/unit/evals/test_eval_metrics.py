"""The figures of an evaluation, from rows that can be counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from redstart.evals.intervals import compute_mcnemar_p, estimate_share
from redstart.evals.metrics import compare, compute_figures
from redstart.evals.outcome import EndPoint, RunKey, RunOutcome


def make_row(task: str, solved: bool = True, *, seed: int = 0, run: int = 1, **changes: Any) -> RunOutcome:
    place = EndPoint.solved if solved else EndPoint.still_red
    defaults = {"key": RunKey(task=task, seed=seed, run=run), "solved": solved, "claimed": solved, "place": place}
    return RunOutcome.model_validate({**defaults, "attempts": 1, **changes})


def test_pass_at_1_with_one_run_per_task_is_a_plain_share() -> None:
    metrics = compute_figures([make_row("a"), make_row("b", False), make_row("c"), make_row("d")])
    assert (metrics.tasks, metrics.runs, metrics.broken) == (4, 4, 0)
    assert metrics.pass_at_1 == estimate_share(3, 4)
    assert metrics.pass_at_k == {1: 0.75}
    assert metrics.places == {"solved": 3, "still red": 1}


def test_runs_of_one_task_count_as_one_task() -> None:
    rows = [make_row("a", run=number, solved=number < 3) for number in range(1, 5)]
    rows += [make_row("b", run=number) for number in range(1, 4)]
    metrics = compute_figures(rows)
    assert metrics.tasks == 2
    assert metrics.pass_at_1 is not None
    assert metrics.pass_at_1.value == pytest.approx((0.5 + 1) / 2)
    assert metrics.pass_at_1.count == 2
    assert metrics.pass_at_k == pytest.approx({1: 0.75, 2: (5 / 6 + 1) / 2, 3: 1.0})


def test_green_that_fails_hidden_tests_lowers_honest_green() -> None:
    lie = make_row("b", False, claimed=True, place=EndPoint.false_green)
    metrics = compute_figures([make_row("a"), lie, make_row("c", False)])
    assert metrics.honest_green == estimate_share(1, 2)
    assert metrics.pass_at_1 == estimate_share(1, 3)


def test_broken_runs_are_counted_separately() -> None:
    metrics = compute_figures([make_row("a"), make_row("b", False, place=EndPoint.broken, seconds=1e6)])
    assert (metrics.broken, metrics.tasks) == (1, 1)
    assert metrics.seconds is not None
    assert metrics.seconds.value == 0
    assert compute_figures([]).pass_at_1 is None


def test_edits_and_attempts_are_summed_over_runs() -> None:
    first_row = make_row(
        "a", attempts=3, rungs={"exact": 2, "none": 1}, repeated=1, revisited=2, dishonest=1, recall=0.5
    )
    second_row = make_row(
        "b", attempts=1, rungs={"exact": 1}, lines_shown=True, recall=1.0, input_tokens=5, output_tokens=2
    )
    metrics = compute_figures([first_row, second_row])
    assert metrics.rungs == {"exact": 3, "none": 1}
    assert metrics.apply_rate is not None
    assert metrics.apply_rate.value == 0.75
    assert metrics.repeated is not None
    assert metrics.repeated.value == 0.5
    assert metrics.revisited is not None
    assert metrics.revisited.value == 1.0
    assert metrics.dishonest_caught == 1
    assert metrics.recall is not None
    assert metrics.recall.value == 0.75
    assert metrics.lines_shown == estimate_share(1, 1)
    assert metrics.tokens is not None
    assert metrics.tokens.value == 3.5


def test_only_runs_present_in_both_are_compared() -> None:
    a = [
        make_row("a", False),
        make_row("b"),
        make_row("c", False),
        make_row("only a"),
        make_row("broken", place=EndPoint.broken),
        make_row("down"),
    ]
    b = [
        make_row("a", usd=2.0),
        make_row("b"),
        make_row("c", False),
        make_row("only b"),
        make_row("broken"),
        make_row("down", place=EndPoint.broken),
    ]
    comparison = compare(a, b)
    assert (comparison.tasks, comparison.pairs, comparison.only_a, comparison.only_b, comparison.both) == (
        3,
        3,
        0,
        1,
        1,
    )
    assert comparison.p == compute_mcnemar_p(0, 1)
    assert comparison.difference is not None
    assert comparison.difference.value == pytest.approx(1 / 3)
    assert comparison.costs["usd"].value == pytest.approx(2 / 3)


def test_runs_with_different_seeds_are_not_paired() -> None:
    comparison = compare([make_row("a", seed=1)], [make_row("a", seed=2)])
    assert comparison.pairs == 0
    assert comparison.words == "no task was run by both"


def test_runs_of_one_task_do_not_count_as_independent_tasks() -> None:
    """Ten runs of one task that B alone solves are one piece of evidence, not ten."""
    a = [make_row("a", False, run=number) for number in range(10)]
    b = [make_row("a", True, run=number) for number in range(10)]
    assert compare(a, b).p == 1.0
