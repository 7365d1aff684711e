"""A metric, measured repeatedly and in turns."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from redstart.core.run_preferences import Metric, MetricDirection
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.testing.sandbox import FakeSandbox
from redstart.testing.states import make_snapshot
from redstart.toolkit.honesty.verdict.metric import RUNS, MetricJudgement, find_last_number, weigh

START, BEFORE, AFTER = (make_snapshot(tree=letter * 40) for letter in "abc")
PLACE = Environment(mount="/repo", python="/usr/bin/python3")


class Meter:
    """Prints the next value of each version's series in each run, and records the order of the runs."""

    def __init__(self, start: Sequence[object], before: Sequence[object], after: Sequence[object]) -> None:
        self._left = {item.tree: list(values) for item, values in ((START, start), (BEFORE, before), (AFTER, after))}
        self.order: list[str] = []

    def __call__(self, execution: Execution) -> Completed:
        tree = execution.snapshot.tree
        self.order.append(tree[0])
        values = self._left[tree]
        value = values.pop(0) if len(values) > 1 else values[0]
        failed = value is None
        return Completed(
            exit_code=int(failed), cause=ExitCause.failed if failed else ExitCause.ok, output=f"3 runs took {value}\n"
        )


async def run_weigh(meter: Meter, better: MetricDirection = MetricDirection.smaller, start=START) -> MetricJudgement:
    metric = Metric(command=("measure",), better=better, start=start)
    execution = Execution(argv=metric.command, snapshot=AFTER, environment=PLACE)
    return await weigh(FakeSandbox(meter), metric, execution, BEFORE, AFTER)


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
def test_last_number_of_the_output_is_the_metric(output, number):
    assert find_last_number(output) == number


async def test_versions_are_measured_in_turns_five_times_each():
    meter = Meter([1], [1], [1])
    assert await run_weigh(meter) == MetricJudgement(True, "the metric is 1, was 1")
    assert "".join(meter.order) == "bca" * RUNS


async def test_version_that_is_also_the_start_is_measured_once_per_turn():
    meter = Meter([1], [1], [1])
    assert (await run_weigh(meter, start=BEFORE)).is_met
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
async def test_metric_is_worse_only_beyond_the_spread_of_the_previous_version(before, after, better, holds):
    assert (
        await run_weigh(Meter([50 if better is MetricDirection.smaller else 0], before, after), better)
    ).is_met is holds


async def test_small_steps_cannot_add_up_to_a_result_worse_than_the_start():
    judgement = await run_weigh(Meter([10], [11, 13, 12, 12, 12], [13]))
    assert (judgement.is_met, judgement.message) == (
        False,
        "the metric got worse: 13, at the start 10 (smaller is better)",
    )


async def test_unmeasurable_metric_is_reported():
    assert await run_weigh(Meter([1], [None], [1])) == MetricJudgement(
        False, "the metric could not be measured: 3 runs took None", is_measured=False
    )
    judgement = await run_weigh(Meter([1], [1], [1, None]))
    assert (judgement.is_met, judgement.is_measured) == (False, True)
    assert "could not be measured with it" in judgement.message
    assert (await run_weigh(Meter([None], [1], [1]))).is_met, (
        "where there was no program at the start, there is nothing to lose"
    )
