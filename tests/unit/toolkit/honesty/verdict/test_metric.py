"""A metric, measured repeatedly and in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.core.wishes import Metric, MetricDirection
from redstart.testing.sandbox import FakeSandbox
from redstart.testing.states import snapshot
from redstart.toolkit.honesty.verdict.metric import RUNS, MetricJudgement, last_number, weigh

START, BEFORE, AFTER = (snapshot(tree=letter * 40) for letter in "abc")
PLACE = Environment(mount="/repo", python="/usr/bin/python3")


class Meter:
    """Prints the next value of each version's series in each run, and records the order of the runs."""

    def __init__(self, start: Sequence[object], before: Sequence[object], after: Sequence[object]) -> None:
        self._left = {item.tree: list(said) for item, said in ((START, start), (BEFORE, before), (AFTER, after))}
        self.order: list[str] = []

    def __call__(self, execution: Execution) -> Completed:
        tree = execution.snapshot.tree
        self.order.append(tree[0])
        said = self._left[tree]
        value = said.pop(0) if len(said) > 1 else said[0]
        failed = value is None
        return Completed(
            exit_code=int(failed), cause=ExitCause.failed if failed else ExitCause.ok, output=f"3 runs took {value}\n"
        )


def weighed(meter: Meter, better: MetricDirection = MetricDirection.smaller, start=START) -> MetricJudgement:
    metric = Metric(command=("measure",), better=better, start=start)
    asked = Execution(argv=metric.command, snapshot=AFTER, environment=PLACE)
    return asyncio.run(weigh(FakeSandbox(meter), metric, asked, BEFORE, AFTER))


@pytest.mark.parametrize(
    ("output", "number"),
    [
        ("took 12 ms, then 7.5\n", 7.5),
        ("1e-3", 0.001),
        ("score: -4", -4.0),
        ("a 1_000", 1000.0),
        (".5 of all", 0.5),
        ("version v2 of 1.2.3 done", None),
        ("nothing", None),
        ("", None),
        ("12%", 12.0),
        ("x=3, y=4.", 4.0),
    ],
)
def test_the_last_number_counts(output, number):
    assert last_number(output) == number


def test_versions_are_measured_in_turns_five_times_each():
    meter = Meter([1], [1], [1])
    assert weighed(meter) == MetricJudgement(True, "the metric is 1, was 1")
    assert "".join(meter.order) == "bca" * RUNS


def test_a_version_is_measured_once_where_it_is_the_first_too():
    meter = Meter([1], [1], [1])
    assert weighed(meter, start=BEFORE).holds
    assert "".join(meter.order) == "bc" * RUNS


@pytest.mark.parametrize(
    ("before", "after", "better", "holds"),
    [
        ([10], [10], MetricDirection.smaller, True),
        ([10], [11], MetricDirection.smaller, False),
        ([10], [11], MetricDirection.larger, True),
        ([10], [9], MetricDirection.larger, False),
        ([10, 12, 11, 10, 11], [12], MetricDirection.smaller, True),
        ([10, 12, 11, 10, 11], [14], MetricDirection.smaller, False),
        ([10], [10, 90, 10, 10, 90], MetricDirection.smaller, True),
        ([10], [10, 90, 90, 10, 90], MetricDirection.smaller, False),
    ],
)
def test_worse_is_what_goes_past_the_spread_of_the_version_before(before, after, better, holds):
    assert weighed(Meter([50 if better is MetricDirection.smaller else 0], before, after), better).holds is holds


def test_small_steps_do_not_add_up_to_worse_than_the_start():
    said = weighed(Meter([10], [11, 13, 12, 12, 12], [13]))
    assert (said.holds, said.words) == (False, "the metric got worse: 13, at the start 10 (smaller is better)")


def test_what_cannot_be_measured_is_said():
    assert weighed(Meter([1], [None], [1])) == MetricJudgement(
        False, "the metric could not be measured: 3 runs took None", is_measured=False
    )
    broken = weighed(Meter([1], [1], [1, None]))
    assert (broken.holds, broken.is_measured) == (False, True)
    assert "could not be measured with it" in broken.words
    assert weighed(Meter([None], [1], [1])).holds, "where there was no program at the start, there is nothing to lose"
